"""Intervals of counted rates, and what a count can promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk.evaluation.intervals import (
    Interval,
    needed,
    needed_without_error,
    percent,
    probability_of_at_most,
    promise,
    proves_at_most,
    upper_bound,
    wilson,
)

COUNTS = st.integers(0, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
CONFIDENCES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


def near(low: float, high: float) -> Interval:
    return Interval(pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def clopper_pearson(count: int, of: int, confidence: float = 0.95) -> Interval:
    """The two-sided interval, as tables give it, from the one-sided bound."""
    one_sided = (1 + confidence) / 2
    return Interval(1 - upper_bound(of - count, of, one_sided), upper_bound(count, of, one_sided))


# ---------------------------------------------------------------- Wilson


def test_wilson_gives_the_figures_of_hand_calculation():
    # 8 of 10 with z = 1.959964: (0.8 + 0.192073 +- 1.959964 * sqrt(0.016 + 0.0096036)) / 1.384146
    assert wilson(8, 10) == near(0.4902, 0.9433)
    assert wilson(0, 10) == near(0.0, 0.2775)
    assert wilson(13, 13) == near(0.7719, 1.0)


@pytest.mark.parametrize(
    ("count", "of", "low", "high"), [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (1, 29, 0.0061, 0.1718)]
)
def test_wilson_gives_the_published_figures(count, of, low, high):
    """R. G. Newcombe, Two-sided confidence intervals for the single proportion (1998), table I, method 3."""
    assert wilson(count, of) == near(low, high)


def test_wilson_at_another_confidence_is_narrower_or_wider():
    assert wilson(8, 10, 0.9) == near(0.5408, 0.9314)


def test_wilson_takes_a_sum_of_graded_values():
    low, high = wilson(7.5, 10)
    assert wilson(7, 10).low < low < wilson(8, 10).low
    assert wilson(7, 10).high < high < wilson(8, 10).high


def test_without_a_try_the_rate_can_be_anything():
    assert wilson(0, 0) == clopper_pearson(0, 0) == (0.0, 1.0)
    assert upper_bound(0, 0) == 1.0


@given(COUNTS, CONFIDENCES)
def test_every_interval_lies_in_0_to_1_and_holds_the_observed_rate(counted, confidence):
    count, of = counted
    for low, high in (wilson(count, of, confidence), clopper_pearson(count, of, confidence)):
        assert 0 <= low <= high <= 1
        if of:
            assert low <= count / of <= high


@given(COUNTS)
def test_yes_and_no_mirror_each_other(counted):
    count, of = counted
    for interval in (wilson, clopper_pearson):
        low, high = interval(count, of)
        mirrored = interval(of - count, of)
        assert (low, high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)


# ---------------------------------------------------------------- Clopper and Pearson


def test_13_of_13_without_an_error_prove_an_error_rate_of_at_most_20_58_per_cent():
    assert upper_bound(0, 13) == pytest.approx(1 - 0.05 ** (1 / 13)) == pytest.approx(0.2058, abs=5e-5)


def test_59_without_an_error_are_the_first_to_prove_5_per_cent():
    assert upper_bound(0, 59) <= 0.05 < upper_bound(0, 58)


def test_clopper_pearson_gives_the_figures_of_the_tables():
    assert clopper_pearson(8, 10) == near(0.4439, 0.9748)
    assert clopper_pearson(0, 10) == near(0.0, 0.3085)
    assert clopper_pearson(1, 20) == near(0.0013, 0.2487)
    assert upper_bound(1, 100) == pytest.approx(0.0466, abs=5e-5)


def test_large_counts_neither_overflow_nor_lose_the_bound():
    assert upper_bound(50, 10_000) == pytest.approx(0.0063246, abs=5e-7)


@given(COUNTS, CONFIDENCES)
def test_at_the_upper_bound_so_few_are_seen_with_the_probability_left_over(counted, confidence):
    count, of = counted
    bound = upper_bound(count, of, confidence)
    if count < of:
        assert probability_of_at_most(count, of, bound) == pytest.approx(1 - confidence, abs=1e-9)
    else:
        assert bound == 1.0


def test_the_bounds_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    for count, of in ((0, 1), (3, 7), (12, 80), (80, 80), (399, 400)):
        exact = stats.binomtest(count, of).proportion_ci(method="exact")
        score = stats.binomtest(count, of).proportion_ci(method="wilson")
        assert clopper_pearson(count, of) == pytest.approx((exact.low, exact.high), abs=1e-9)
        assert wilson(count, of) == pytest.approx((score.low, score.high), abs=1e-9)


def test_a_binomial_probability_is_the_sum_of_its_terms():
    assert probability_of_at_most(1, 3, 0.5) == pytest.approx(4 / 8)
    assert probability_of_at_most(0, 4, 0.25) == pytest.approx(0.75**4)
    assert probability_of_at_most(2, 5, 0.0) == probability_of_at_most(5, 5, 0.7) == 1.0
    assert probability_of_at_most(2, 5, 1.0) == 0.0


# ---------------------------------------------------------------- promises


def test_needed_without_error_is_about_three_over_the_rate():
    assert needed_without_error(0.05, 0.95) == 59
    assert needed_without_error(0.1, 0.95) == 29
    assert needed_without_error(0.01, 0.95) == 299
    assert needed_without_error(0.001, 0.95) == 2995
    assert needed_without_error(0.5, 0.75) == 2  # 0.5 ** 2 is exactly what 75 % leaves over


@given(st.integers(0, 6), st.sampled_from([0.02, 0.05, 0.1, 0.3]), CONFIDENCES)
def test_needed_is_the_first_number_of_tries_that_proves_the_rate(errors, max_rate, confidence):
    enough = needed(errors, max_rate, confidence)
    assert proves_at_most(errors, enough, max_rate, confidence)
    assert not proves_at_most(errors, enough - 1, max_rate, confidence)


def test_a_promise_that_can_be_given_says_what_is_proved():
    kept = promise(1, 120, 0.05)
    assert (kept.given, kept.more_needed, kept.upper) == (True, 0, pytest.approx(0.0389, abs=5e-5))
    assert kept.sentence == "At most 5 % wrong can be promised: 1 wrong of 120 prove at most 3.9 % (95 % confidence)."


def test_a_promise_that_cannot_be_given_says_how_many_cases_it_takes():
    kept = promise(0, 13, 0.05)
    assert (kept.given, kept.more_needed) == (False, 46)
    assert kept.sentence == (
        "At most 5 % wrong cannot be promised: 0 wrong of 13 prove only that at most 20.6 % are (95 % confidence);"
        " it takes 46 more without an error."
    )


def test_nothing_tried_promises_nothing():
    assert promise(0, 0, 0.05).sentence == (
        "At most 5 % wrong cannot be promised: nothing was tried; it takes 59 more without an error."
    )


def test_a_promise_with_every_case_wrong_is_not_given():
    kept = promise(3, 3, 0.5)
    assert (kept.given, kept.upper, kept.more_needed) == (False, 1.0, needed(3, 0.5) - 3)


@given(COUNTS, st.sampled_from([0.05, 0.2, 0.5]))
def test_a_promise_is_given_exactly_when_the_bound_keeps_it_and_the_named_number_of_cases_gives_it(counted, max_rate):
    errors, of = counted
    kept = promise(errors, of, max_rate)
    assert kept.given == (kept.upper <= max_rate) == (kept.more_needed == 0)
    assert promise(errors, of + kept.more_needed, max_rate).given


def test_a_share_is_never_rounded_to_nothing_or_everything():
    assert [percent(share) for share in (0.0, 0.0001, 0.05, 0.2058, 0.9999, 1.0)] == [
        "0 %", "less than 0.1 %", "5 %", "20.6 %", "over 99.9 %", "100 %",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "call",
    [
        lambda: wilson(3, 2),
        lambda: wilson(-1, 2),
        lambda: wilson(float("nan"), 2),
        lambda: wilson(1, 2, 1.0),
        lambda: upper_bound(1, -1),
        lambda: upper_bound(0.5, 2),
        lambda: needed(0, 0.0),
        lambda: needed(-1, 0.1),
        lambda: needed_without_error(1.0),
        lambda: promise(1, 2, 1.5),
        lambda: probability_of_at_most(1, 2, 1.1),
    ],
)
def test_wrong_arguments_are_a_value_error(call):
    with pytest.raises(ValueError, match="must"):
        call()
