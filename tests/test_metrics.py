"""Figures of rankings and of abstention, with what they were counted on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk.evaluation.metrics import (
    Rate,
    Risk,
    aurc,
    auroc,
    average,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank,
    reliability,
    risk_coverage,
)

IDS = st.sampled_from("abcdefgh")
RANKED = st.lists(IDS, max_size=12)
RELEVANT = st.sets(IDS, min_size=1, max_size=5)
SCORED = st.lists(st.tuples(st.integers(-3, 3).map(float), st.booleans()), max_size=25)


# ---------------------------------------------------------------- rates


def test_a_rate_carries_numerator_denominator_and_interval():
    rate = Rate(9, 14)
    assert rate.value == pytest.approx(0.643, abs=5e-4)
    assert rate.interval == pytest.approx((0.3876, 0.8366), abs=5e-5)
    assert str(rate) == "64.3 % (9 of 14; 95 %: 38.8 % to 83.7 %)"


def test_a_rate_of_no_cases_is_not_applicable_and_not_zero():
    """BR-110"""
    assert (Rate(0, 0).value, Rate(0, 0).interval) == (None, None)
    assert str(Rate(0, 0)) == "not applicable (0 cases)"
    assert Rate(0, 3).value == 0.0


def test_rates_add_up_case_by_case():
    assert Rate(1, 2) + Rate(2, 6) == Rate(3, 8)


@pytest.mark.parametrize(("count", "of"), [(3, 2), (-1, 2), (math.nan, 2), (0, -1)])
def test_a_rate_beyond_its_denominator_is_refused(count, of):
    with pytest.raises(ValueError, match="must"):
        Rate(count, of)


def test_an_average_leaves_out_what_does_not_apply_and_nothing_else():
    """BR-109, BR-110: a failed case stays as 0.0, one that does not apply leaves the denominator."""
    assert average([1.0, 0.0, None, 0.5]) == Rate(1.5, 3)
    assert average([None, None]) == average([]) == Rate(0, 0)


def test_ten_cases_of_which_two_failed_are_averaged_over_ten():
    """BR-109"""
    assert average([1.0] * 8 + [0.0] * 2).value == 0.8


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.5, -0.1])
def test_one_value_that_is_no_share_is_refused_instead_of_spreading(value):
    """BR-110"""
    with pytest.raises(ValueError, match="0..1"):
        average([1.0, value])


# ---------------------------------------------------------------- rankings


def test_recall_is_the_share_of_the_relevant_that_was_found():
    assert recall_at_k(["a", "x", "b"], {"a", "b"}, 1) == 0.5
    assert recall_at_k(["a", "x", "b"], {"a", "b"}, 3) == 1.0
    assert recall_at_k([], {"a"}, 3) == 0.0


def test_several_chunks_of_one_document_take_up_one_place():
    ranked = ["x", "x", "x", "a"]
    assert recall_at_k(ranked, {"a"}, 2) == 1.0
    assert reciprocal_rank(ranked, {"a"}) == 0.5
    assert ndcg_at_k(ranked, {"a"}, 2) == pytest.approx(1 / math.log2(3))


def test_without_anything_relevant_no_figure_applies():
    """BR-110"""
    assert recall_at_k(["a"], set(), 1) is None
    assert reciprocal_rank(["a"], set()) is None
    assert ndcg_at_k(["a"], set(), 1) is None


def test_reciprocal_rank_is_that_of_the_first_relevant():
    assert reciprocal_rank(["x", "y", "b", "a"], {"a", "b"}) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x"], {"a"}) == 0.0


def test_ndcg_discounts_by_the_logarithm_of_the_rank_and_compares_with_the_best_order():
    # found at ranks 1 and 3 of three relevant: (1 + 1/2) / (1 + 1/log2(3) + 1/2)
    assert ndcg_at_k(["a", "x", "b"], {"a", "b", "c"}, 3) == pytest.approx(1.5 / 2.1309298, abs=1e-6)
    assert ndcg_at_k(["a", "x"], {"a", "b"}, 1) == 1.0  # no order of one place is better


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "3"])
def test_a_k_that_is_no_positive_whole_number_is_refused(k):
    for figure in (recall_at_k, ndcg_at_k):
        with pytest.raises(ValueError, match="k must be"):
            figure(["a"], {"a"}, k)


@given(RANKED, RELEVANT, st.integers(1, 12))
def test_figures_lie_in_0_to_1_and_recall_never_falls_with_k(ranked, relevant, k):
    figures = [recall_at_k(ranked, relevant, k), reciprocal_rank(ranked, relevant), ndcg_at_k(ranked, relevant, k)]
    assert all(0 <= figure <= 1 for figure in figures)
    assert recall_at_k(ranked, relevant, k) <= recall_at_k(ranked, relevant, k + 1)


@given(RANKED, RELEVANT, st.integers(1, 12))
def test_repeating_what_is_ranked_already_changes_nothing(ranked, relevant, k):
    repeated = [name for name in ranked for _ in range(2)]
    assert recall_at_k(repeated, relevant, k) == recall_at_k(ranked, relevant, k)
    assert reciprocal_rank(repeated, relevant) == reciprocal_rank(ranked, relevant)
    assert ndcg_at_k(repeated, relevant, k) == ndcg_at_k(ranked, relevant, k)


@given(RELEVANT, st.integers(1, 8))
def test_the_relevant_first_is_perfect(relevant, k):
    ranked = [*sorted(relevant), "x", "y"]
    assert ndcg_at_k(ranked, relevant, k) == pytest.approx(1.0)
    assert reciprocal_rank(ranked, relevant) == 1.0


def test_the_figures_agree_with_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    ranked, relevant = list("xaybzc"), {"a", "c", "q"}
    qrels = [ir_measures.Qrel("1", name, 1) for name in relevant]
    run = [ir_measures.ScoredDoc("1", name, -float(rank)) for rank, name in enumerate(ranked)]
    found = ir_measures.calc_aggregate([ir_measures.R @ 3, ir_measures.RR, ir_measures.nDCG @ 5], qrels, run)
    assert recall_at_k(ranked, relevant, 3) == pytest.approx(found[ir_measures.R @ 3])
    assert reciprocal_rank(ranked, relevant) == pytest.approx(found[ir_measures.RR])
    assert ndcg_at_k(ranked, relevant, 5) == pytest.approx(found[ir_measures.nDCG @ 5])


# ---------------------------------------------------------------- scores that part right from wrong


def test_auroc_is_how_often_a_true_one_is_above_a_false_one_with_ties_counting_half():
    # pairs: (.9, .5) yes, (.9, .4) yes, (.5, .5) half, (.5, .4) yes
    assert auroc([0.9, 0.5, 0.5, 0.4], [True, True, False, False]) == 3.5 / 4
    assert auroc([1.0, 1.0], [True, False]) == 0.5
    assert auroc([1.0, 2.0], [True, False]) == 0.0


def test_auroc_does_not_apply_when_one_label_is_missing():
    """BR-110"""
    assert auroc([0.1, 0.2], [True, True]) is None
    assert auroc([], []) is None


@given(SCORED)
def test_auroc_counts_pairs_and_turns_over_with_the_labels(scored):
    scores, labels = [score for score, _ in scored], [label for _, label in scored]
    pairs = [
        (one > other) + 0.5 * (one == other)
        for one, yes in scored
        for other, also in scored
        if yes and not also
    ]  # fmt: skip
    if pairs:
        assert auroc(scores, labels) == pytest.approx(sum(pairs) / len(pairs))
        assert auroc(scores, [not label for label in labels]) == pytest.approx(1 - auroc(scores, labels))
    else:
        assert auroc(scores, labels) is None


def test_auroc_agrees_with_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    scores = [0.1, 0.4, 0.35, 0.8, 0.4, 0.4, 0.9, 0.2]
    labels = [False, False, True, True, True, False, True, False]
    assert auroc(scores, labels) == pytest.approx(sklearn.roc_auc_score(labels, scores))


def test_the_risk_coverage_curve_has_a_point_for_each_score_that_could_be_the_threshold():
    assert risk_coverage([0.9, 0.7, 0.7, 0.2], [False, True, False, True]) == [
        Risk(0.9, Rate(1, 4), Rate(0, 1)),
        Risk(0.7, Rate(3, 4), Rate(1, 3)),
        Risk(0.2, Rate(4, 4), Rate(2, 4)),
    ]


def test_aurc_is_the_mean_risk_over_the_coverages():
    # the wrong one last: 0, 0, 1/3; the wrong one first: 1, 1/2, 1/3
    assert aurc([3.0, 2.0, 1.0], [False, False, True]) == pytest.approx(1 / 9)
    assert aurc([3.0, 2.0, 1.0], [True, False, False]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert aurc([], []) is None


def test_aurc_of_equal_scores_is_the_share_of_wrong_ones():
    assert aurc([1.0] * 4, [True, False, False, False]) == pytest.approx(0.25)


@given(SCORED, st.randoms(use_true_random=False))
def test_the_order_of_the_cases_changes_no_figure(scored, random):
    shuffled = random.sample(scored, len(scored))
    for figure in (auroc, aurc, risk_coverage):
        one = figure([score for score, _ in scored], [label for _, label in scored])
        other = figure([score for score, _ in shuffled], [label for _, label in shuffled])
        assert one == other


@given(SCORED.filter(bool))
def test_the_curve_ends_with_everything_answered(scored):
    scores, wrong = [score for score, _ in scored], [label for _, label in scored]
    assert risk_coverage(scores, wrong)[-1].risk == Rate(sum(wrong), len(wrong))
    assert 0 <= aurc(scores, wrong) <= 1


@pytest.mark.parametrize("figure", [auroc, aurc, risk_coverage])
def test_scores_without_labels_and_scores_that_are_no_number_are_refused(figure):
    with pytest.raises(ValueError, match="2 scores and 1 labels"):
        figure([0.1, 0.2], [True])
    with pytest.raises(ValueError, match="NaN"):
        figure([math.nan, 0.2], [True, False])


# ---------------------------------------------------------------- whether probabilities hold

PROBABILITIES = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]) | st.floats(0, 1), st.booleans()))


@given(PROBABILITIES)
def test_the_groups_of_a_reliability_diagram_hold_every_case_once_and_rise(scores):
    groups = reliability(scores)
    assert sum(rate.of for _, rate in groups) == len(scores)
    assert sum(rate.count for _, rate in groups) == sum(right for _, right in scores)
    assert [said for said, _ in groups] == sorted(said for said, _ in groups)
    assert len(groups) <= max(2, len(scores) // 10)


def test_equal_probabilities_stay_in_one_group():
    assert reliability([(0.5, True), (0.5, False), (0.5, False)]) == [(0.5, Rate(1, 3))]
    assert reliability([]) == []
