"""The words whose meaning the support check knows: synonyms, opposites, negations, qualifiers. English and Bangla.

The lists are general language and the language of policies. They are short on purpose: a word that stands in none of
them is compared by its root alone, and a claim that rests on an unknown synonym is turned away, not waved through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from evidencedesk.text import normalise, stem

# One group a line: words and phrases (joined by +) that policies use for one thing. No group may hold a word that
# only sometimes means the others where the difference matters (rent is not buy).
_SYNONYMS = """
return send+back give+back bring+back take+back hand+back
refund money+back reimburse reimbursement repay
cancel terminate end discontinue
deliver delivery arrive arrival receive reach shipment
buy purchase acquire
free free+charge no+charge no+cost no+fee without+charge cost+nothing complimentary gratis ফ্রি বিনামূল্য বিনা+মূল্য বিনা+খরচ
must required require need necessary obligatory mandatory
allow permit permitted may
keep retain store hold
delete erase remove
fix repair mend
begin start commence
finish complete conclude
fee charge cost price
customer client consumer buyer shopper
shop store outlet
send ship dispatch post mail
ask request
tell inform notify notification
answer reply respond response
choose select pick
change alter modify amend
get obtain receive
show display
help assist assistance support
use utilise utilize
email e+mail
phone call telephone ring
film movie picture
movie film motion+picture
automobile car
author writer
actor actress
big large huge
small little
make create produce
create design found establish
found establish form start
song single track
recording record
tv television
show series programme program
singer vocalist
music musical musician
award prize
aim strive
work employed
US USA united+states america american
UK british britain united+kingdom
anywhere wherever everywhere
quick fast rapid soon
whole full entire complete
faulty defective fault defect
broken damage damaged
invoice bill receipt
valid stand apply effective
several multiple numerous various
type kind sort
want intend wish
usually normally commonly generally typically
known refer called named
main predominant primary chief principal
aid help
prevent stop
crazy mad insane
win earn
team partner
select choose pick tap
tribute homage
disadvantaged underprivileged
star feature
host present presenter
die death
participate role
ফেরত রিটার্ন
টাকা অর্থ
কেনা ক্রয় কিনা কিন
বাতিল রদ
ডেলিভারি পৌঁছা পাওয়া
দিন দিবস
মেরামত সারাই সারানো
পুরো সম্পূর্ণ পূর্ণ সমস্ত
বাইক সাইকেল
দোকান শোরুম স্টোর
রসিদ চালান ইনভয়েস
চার্জ খরচ ফি মূল্য
ত্রুটি সমস্যা
শুরু আরম্ভ
শেষ সমাপ্ত
তৈরি নির্মাণ নির্মিত বানানো
জন্ম জন্মগ্রহণ
মৃত্যু মারা
"""

# concept: words that affirm it | words that deny it. A word of one side against one of the other contradicts.
_OPPOSITES = """
enable on enabled activate active | disable disabled deactivate inactive
allow allowed permit permitted অনুমোদিত বৈধ | forbid forbidden prohibit prohibited ban banned disallow নিষিদ্ধ অবৈধ নিষেধ
include included inclusive | exclude excluded exclusive
open opened চালু খোলা | close closed shut বন্ধ
new unused unridden নতুন নয়া | used secondhand ridden old পুরনো পুরানো পুরোনো ব্যবহৃত
before earlier prior আগে পূর্বে | after later পরে পর
more greater higher above over বেশি অধিক | less fewer lower below under কম অল্প
most best | least worst
maximum max সর্বোচ্চ | minimum min সর্বনিম্ন
increase rise grow raise | decrease fall shrink decline reduce drop
accept accepted approve | reject rejected refuse refused deny decline
possible | impossible
able | unable incapable
valid | invalid void
start begin | stop end cease
first প্রথম | last শেষ
always | never
win won | lose lost
buy purchase | sell sold
male man | female woman
alive living | dead
success succeed successful | failure fail unsuccessful
public | private
inside indoor indoors | outside outdoor outdoors
early | late
online | offline
paid | unpaid
full | partial half
mandatory required compulsory must | optional voluntary
upper | lower
import | export
married | unmarried single divorced
guilty convicted | innocent acquitted
remain stay | leave
wet | dry
hot warm | cold cool
large big বড় বৃহৎ বৃহত্তম | small little ছোট ক্ষুদ্র ক্ষুদ্রতম
long | short
refundable | nonrefundable
উত্তর | দক্ষিণ
পূর্ব | পশ্চিম
জন্ম | মৃত্যু
"""

_NEGATIONS = (
    "not never no cannot without neither nor none nobody nothing nowhere barely hardly scarcely unable incapable lack"
    " zero yet refuse refused decline declined fail failed avoid avoided avoiding against deny denied"
)
_NEGATIONS_BANGLA = "না নেই নয় নাই নহে নি নন ছাড়া বিনা ব্যতীত"

# Words that make a claim stronger than the same claim without them: the evidence has to hold one of the group.
_QUALIFIERS = """
only solely exclusively just শুধু কেবল শুধুমাত্র কেবলমাত্র একমাত্র মাত্র
all every always each any whatever entire everyone everybody anyone anybody everything \
সব সকল প্রতিটি প্রত্যেক সর্বদা সবসময় যেকোনো
must required require compulsory mandatory obliged অবশ্যই বাধ্যতামূলক
immediately instantly সঙ্গে+সঙ্গে তৎক্ষণাৎ
guarantee guaranteed নিশ্চিত
unlimited indefinitely forever permanently permanent চিরকাল আজীবন স্থায়ী
same+day
used second+hand secondhand ব্যবহৃত
fully completely entirely full complete whole পুরো সম্পূর্ণ
automatically
"""

# A claim that leaves out what stands behind one of these says more than the evidence.
_CONDITIONS = "if unless except excepting provided providing only solely যদি শর্ত শর্তে শুধু কেবল শুধুমাত্র কেবলমাত্র একমাত্র"
_HEDGES = "may might sometimes usually normally typically often possibly likely perhaps কখনো হয়তো সম্ভবত"

# Words that carry too little to be looked for: verbs that hardly say what is done, words of time and place that the
# opposites compare, ways of speaking.
_LIGHT = (
    "yes oh ok okay well also however so then than such there very really please actually indeed too own etc about into"
    " during through over up out off its one may might some other both if while"
    " get take make give go come let put need happen currently before after"
    " সাধারণত তো দেওয়া দেয়া দিতে দেন দেয় যায় যাবে যান নেওয়া নেয়া নিতে নেয় হওয়া হতে হয়ে পাওয়া পাবেন পায় পেয়ে"
    " পারা পারবে লাগে লাগবে থাকে থাকবে এমন যেতে আগে পরে"
)

_IRREGULAR = """
be been being am is are was were|have has had|do does did done|go went gone going|send sent|buy bought|pay paid
keep kept|give gave given|take took taken|bring brought|sell sold|write wrote written|win won|lose lost|lead led
leave left|hold held|find found|tell told|say said|make made|get got gotten|begin began begun|break broke broken
build built|choose chose chosen|come came|become became|drive drove driven|fall fell fallen|feel felt|fly flew flown
forget forgot forgotten|grow grew grown|hear heard|know knew known|lend lent|mean meant|meet met|ride rode ridden
rise rose risen|run ran|see saw seen|show shown|sing sang sung|sit sat|speak spoke spoken|spend spent|stand stood
swim swam swum|teach taught|tear tore torn|think thought|throw threw thrown|wear wore worn|die died dead death
bear born birth|man men|woman women|child children|person people|wife wives|life lives live|high height|long length
wide width|strong strength|deep depth|eat ate eaten|draw drew drawn|shoot shot|fight fought|star starred starring
"""

# The leftmost match is the longest ending.
_ENDING = re.compile(
    "(?:ization|isation|ational|fulness|ousness|iveness|ingly|edly|ation|ition|ment|ness|ity|ively|ive|ing|er|or|ed|y"
    "|ian|an|ally|ly|ous|ist|ion|al|able|ible|ance|ence|ant|ent|ful|ary|age|es|e|s|a)$"
)
# Words that a stripped ending would make equal to another word.
_WHOLE_WORDS = """
customer every story university general police party county property number member order other another after never over
under however whether matter letter paper water power master minister daughter sister brother mother father street
season person reason nation station section business december november october september
"""
_WHOLE = frozenset(_WHOLE_WORDS.split())


def _grouped(forms: str) -> dict[str, str]:
    return {form: group.split()[0] for group in forms.replace("\n", "|").split("|") for form in group.split()}


_ROOTS = _grouped(_IRREGULAR)
_SHORT_VERB = re.compile(r"([a-z]{3})(?:ing|ed)$")
_WANTS_E = re.compile(r"[^aeiou][aeiou][^aeiouwxy]$")


@lru_cache(maxsize=1 << 15)
def root(term: str) -> str:
    """Give what an English word shares with its derivations (deliver, delivery, delivered), at least 4 letters.

    Cruder than `stem`: it serves to compare two texts, not to search many. Words of other scripts are their own roots.
    """
    term = _ROOTS.get(term, term)
    if term in _WHOLE or not term.isascii():
        return term
    if found := _SHORT_VERB.match(term):  # taking: take, buying: buy, fixed: fix
        short = found[1] + ("e" if _WANTS_E.match(found[1]) else "")
        return _ROOTS.get(short, short)
    for _ in range(2):
        if ending := _ENDING.search(term, 4):
            term = term[: ending.start()]
    if len(term) > 3 and term[-1] == term[-2] and term[-1] not in "sl":
        term = term[:-1]
    return _ROOTS.get(term, term)


def _roots(listed: str) -> list[tuple[str, ...]]:
    """Give the roots of the words and phrases of a list."""
    return [tuple(root(stem(normalise(word))) for word in entry.split("+")) for entry in listed.split()]


def _lines(table: str) -> Iterator[str]:
    return (line for line in table.split("\n") if line.strip())


def _index(table: str, prefix: str) -> dict[tuple[str, ...], frozenset[str]]:
    """Map each word or phrase to the names of the groups that it stands in."""
    found: dict[tuple[str, ...], frozenset[str]] = {}
    for number, line in enumerate(_lines(table)):
        for phrase in _roots(line):
            found[phrase] = found.get(phrase, frozenset()) | {f"{prefix}{number}"}
    return found


def _opposites() -> dict[str, tuple[tuple[int, int], ...]]:
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for number, line in enumerate(_lines(_OPPOSITES)):
        for sign, side in zip((1, -1), line.split("|"), strict=True):
            for (word,) in _roots(side):
                found[word] = (*found.get(word, ()), (number, sign))
    return found


SYNONYMS = _index(_SYNONYMS, "=")
"""Root, or roots of a phrase -> the groups of meaning that it stands in."""
QUALIFIERS = _index(_QUALIFIERS, "!")
OPPOSITES: Mapping[str, tuple[tuple[int, int], ...]] = _opposites()
"""Root -> (pair, side) of each pair of opposites that it stands in; side is 1 or -1."""
COSTS_NOTHING = SYNONYMS[_roots("gratis")[0]]
"""The group of meaning of what is free of charge, in both languages."""
SAYS_NO_ALONE = frozenset(
    stem(normalise(word)) for word in f"not never no cannot neither nor yet zero {_NEGATIONS_BANGLA}".split()
)
"""Those that say nothing besides; the others (without, refuse) are words to be found in the evidence as well."""
LIGHT = frozenset(word for (word,) in _roots(_LIGHT))
CONDITIONS = frozenset(word for (word,) in _roots(_CONDITIONS))
HEDGES = frozenset(word for (word,) in _roots(_HEDGES))
NEGATIONS = frozenset(stem(word) for word in _NEGATIONS.split())
NEGATIONS_AFTER = frozenset(stem(normalise(word)) for word in _NEGATIONS_BANGLA.split())
"""Bangla's negations stand behind what they negate."""
LONGEST_PHRASE = max(map(len, (*SYNONYMS, *QUALIFIERS)))
PHRASE_BEGINNINGS = frozenset(phrase[0] for phrase in (*SYNONYMS, *QUALIFIERS) if len(phrase) > 1)
