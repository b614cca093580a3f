"""The words and signs of units, money and scales."""

from collections.abc import Mapping

from evidencedesk.text.spelling import word_set
from evidencedesk.text.stemming import stem

UNITS: Mapping[str, frozenset[str]] = {
    unit: word_set(listed)
    for unit, listed in {
        "%": "% ٪ percent pct শতাংশ পার্সেন্ট শতকরা", "second": "second sec সেকেন্ড", "minute": "minute min মিনিট",
        "hour": "hour hr ঘণ্টা ঘন্টা", "am": "am", "pm": "pm", "day": "day calendarday দিন দিবস",
        "business day": "businessday workingday কর্মদিবস কার্যদিবস", "week": "week সপ্তাহ", "month": "month মাস",
        "year": "year yr বছর বৎসর", "BDT": "৳ bdt tk taka টাকা", "USD": "$ usd dollar ডলার", "EUR": "€ eur euro ইউরো",
        "GBP": "£ gbp", "JPY": "¥ jpy yen", "INR": "₹ inr rs rupee রুপি", "kg": "kg kilogram কেজি", "gram": "gram গ্রাম",
        "km": "km kilometre kilometer কিলোমিটার", "metre": "metre meter মিটার", "cm": "cm", "mm": "mm",
        "mile": "mile মাইল", "litre": "litre liter লিটার", "MB": "mb", "GB": "gb",
    }.items()
}  # fmt: skip
"""Unit -> the singular words and signs read as it. A working day is not a day."""

UNIT_OF = {stem(word): unit for unit, listed in UNITS.items() for word in listed}
_POWERS = {3: "k thousand হাজার", 5: "lakh lac লাখ লক্ষ", 6: "m mn million মিলিয়ন", 7: "crore কোটি"}
_POWERS |= {9: "b bn billion বিলিয়ন"}
SCALES = {stem(word): power for power, listed in _POWERS.items() for word in word_set(listed)}
SCALE_LETTERS = word_set("k m mn b bn")
MONEY_SIGNS = "$€£৳₹¥"
MONEY_WORDS = word_set("tk bdt usd eur gbp inr rs টাকা")
MONEY_UNITS = {UNIT_OF[stem(word)] for word in MONEY_WORDS}
