"""From measures of the guard to a probability, and to a threshold that keeps a promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk.evaluation.intervals import proves_at_most
from evidencedesk.evaluation.logistic import LogisticModel, fit_logistic, folds_of, threshold_for
from evidencedesk.evaluation.metrics import Rate


def cases(count: int = 80, seed: int = 1) -> tuple[np.ndarray, list[bool], list[str]]:
    """Two features that speak for an answer, the first twice as much, and one that says nothing."""
    random = np.random.default_rng(seed)
    features = random.normal([0.8, 0.3, 5.0], [0.05, 0.2, 2.0], size=(count, 3))
    margins = 2 * (features[:, 0] - 0.8) / 0.05 + (features[:, 1] - 0.3) / 0.2 + 0.5
    labels = random.random(count) < 1 / (1 + np.exp(-margins))
    return features, labels.tolist(), [f"case{n}" for n in range(count)]


NAMES = ("cosine", "idf_share", "length")


def probabilities(model: LogisticModel, features: object) -> np.ndarray:
    """The model's formula, row by row."""
    standardised = (np.asarray(features) - model.means) / model.scales
    return 1 / (1 + np.exp(-(model.intercept + standardised @ np.array(model.weights))))


# ---------------------------------------------------------------- the model


def test_with_a_feature_that_never_varies_the_model_is_the_share_of_true_labels():
    model = fit_logistic([[1.0]] * 4, [True, True, True, False], ["cosine"])
    assert model == LogisticModel(("cosine",), (1.0,), (1.0,), (0.0,), pytest.approx(math.log(3)))
    assert probabilities(model, [[1.0], [99.0]]) == pytest.approx([0.75, 0.75])


def test_two_groups_without_penalty_get_their_own_shares():
    """A saturated model: with a tiny l2, P is 1/4 where the feature is 0 and 3/4 where it is 1."""
    features = [[0.0]] * 4 + [[1.0]] * 4
    labels = [True, False, False, False, True, True, True, False]
    model = fit_logistic(features, labels, ["hit"], l2=1e-9)
    assert probabilities(model, [[0.0], [1.0]]) == pytest.approx([0.25, 0.75])
    assert (model.means, model.scales) == ((0.5,), (0.5,))
    assert model.weights == pytest.approx((math.log(9) / 2,))  # log-odds from -log 3 to log 3, over two deviations
    assert model.intercept == pytest.approx(0.0, abs=1e-9)


def test_the_penalty_keeps_the_weights_of_cases_that_are_parted_clean_finite():
    model = fit_logistic([[0.0], [1.0]], [False, True], ["hit"], l2=1.0)
    (weight,) = model.weights
    # at the minimum of 2 log(1 + exp(-w)) + w^2 / 2: w = 2 / (1 + exp(w))
    assert weight == pytest.approx(2 / (1 + math.exp(weight)))


def test_at_the_minimum_the_gradient_of_the_penalised_loss_is_nothing():
    features, labels, _ = cases()
    model = fit_logistic(features, labels, NAMES, l2=2.5)
    excess = probabilities(model, features) - np.array(labels)
    standardised = (features - np.array(model.means)) / np.array(model.scales)
    assert np.sum(excess) == pytest.approx(0.0, abs=1e-8)
    assert standardised.T @ excess + 2.5 * np.array(model.weights) == pytest.approx(np.zeros(3), abs=1e-8)


def test_a_model_can_be_read():
    features, labels, _ = cases(400)
    model = fit_logistic(features, labels, NAMES)
    assert model.weights[0] > model.weights[1] > abs(model.weights[2])
    assert model.describe().startswith("log-odds ")
    assert model.describe().index("cosine") < model.describe().index("idf_share") < model.describe().index("length")


def test_the_unit_of_a_feature_does_not_matter():
    features, labels, _ = cases()
    plain = fit_logistic(features, labels, NAMES)
    scaled = fit_logistic(features * [1000, 0.01, 1] + [0, 7, -3], labels, NAMES)
    assert scaled.weights == pytest.approx(plain.weights)
    assert scaled.intercept == pytest.approx(plain.intercept)


def test_the_order_of_the_cases_does_not_matter():
    features, labels, _ = cases()
    assert fit_logistic(features[::-1], labels[::-1], NAMES).weights == pytest.approx(
        fit_logistic(features, labels, NAMES).weights
    )


def test_a_feature_that_may_not_speak_against_an_answer_is_dropped_and_the_rest_fitted_anew():
    features, labels, _ = cases()
    turned = features * [1, -1, 1]
    model = fit_logistic(turned, labels, NAMES, nonnegative=["cosine", "idf_share"])
    assert model.dropped == ("idf_share",)
    assert model.weights[1] == 0.0
    assert "dropped: idf_share" in model.describe()
    alone = fit_logistic(turned[:, [0, 2]], labels, ["cosine", "length"])
    assert (model.weights[0], model.weights[2]) == pytest.approx(alone.weights)


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_no_constrained_weight_is_ever_negative(seed):
    random = np.random.default_rng(seed)
    features, labels = random.normal(size=(12, 3)), [True, False] * 6
    model = fit_logistic(features, labels, NAMES, nonnegative=NAMES)
    assert min(model.weights) >= 0
    assert np.all(np.diff(probabilities(model, np.sort(features, axis=0))) >= -1e-12)


def test_the_model_agrees_with_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    features, labels, _ = cases()
    model = fit_logistic(features, labels, NAMES, l2=2.0)
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    reference = linear.LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(standardised, labels)
    assert model.weights == pytest.approx(reference.coef_[0], abs=1e-5)
    assert model.intercept == pytest.approx(reference.intercept_[0], abs=1e-5)
    assert probabilities(model, features) == pytest.approx(reference.predict_proba(standardised)[:, 1], abs=1e-5)


@pytest.mark.parametrize(
    ("features", "labels", "names", "options", "said"),
    [
        ([[1.0], [2.0]], [True, True], ["a"], {}, "all labels are alike"),
        (np.empty((0, 1)), [], ["a"], {}, "cases of both kinds"),
        ([[1.0], [2.0]], [True], ["a"], {}, "2 rows of features and 1 labels"),
        ([1.0, 2.0], [True, False], ["a"], {}, r"shape \(cases, 1\)"),
        ([[1.0], [math.nan]], [True, False], ["a"], {}, "NaN or infinite"),
        ([[1.0, 2.0], [2.0, 1.0]], [True, False], ["a", "a"], {}, "same name"),
        ([[1.0], [2.0]], [True, False], ["a"], {"nonnegative": ["b"]}, "no feature has the name b"),
        ([[1.0], [2.0]], [True, False], ["a"], {"l2": 0.0}, "l2 must be above 0"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(features, labels, names, options, said):
    with pytest.raises(ValueError, match=said):
        fit_logistic(features, labels, names, **options)


# ---------------------------------------------------------------- scores of cases that a model has not seen


def test_every_fold_has_its_share_of_both_labels():
    _, _, ids = cases(50)
    labels = [n < 10 for n in range(50)]
    folds = folds_of(ids, labels, 5)
    for fold in range(5):
        members = [labels[at] for at in range(50) if folds[at] == fold]
        assert (len(members), sum(members)) == (10, 2)


def test_a_case_keeps_its_fold_whatever_the_order_of_the_cases():
    _, labels, ids = cases()
    forwards = dict(zip(ids, folds_of(ids, labels), strict=True))
    backwards = dict(zip(ids[::-1], folds_of(ids[::-1], labels[::-1]), strict=True))
    assert forwards == backwards


def test_with_few_cases_of_a_kind_there_are_fewer_folds():
    labels = [True] * 9 + [False] * 3
    assert set(folds_of([f"c{n}" for n in range(12)], labels, 5)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("ids", "labels", "folds", "said"),
    [
        (["a", "b", "c"], [True, True, False], 5, "2 cases of each kind, and of one there are 1"),
        (["a", "a", "b", "c"], [True, True, False, False], 5, "each must be another"),
        (["a", "b"], [True], 5, "as many as labels"),
        (["a", "b", "c", "d"], [True, True, False, False], 1, "folds must be"),
    ],
)
def test_what_cannot_be_dealt_into_folds_is_refused(ids, labels, folds, said):
    with pytest.raises(ValueError, match=said):
        folds_of(ids, labels, folds)


# ---------------------------------------------------------------- a threshold that keeps a promise


def test_the_lowest_threshold_that_is_proved_is_taken():
    scores = [float(n) for n in range(100, 0, -1)]
    wrong = [n < 40 for n in range(100, 0, -1)]  # scores 39 and below are wrong
    found = threshold_for(scores, wrong, 0.05)
    # 61 without an error prove 4.8 %, one error in 62 only 7.4 %
    assert (found.value, found.coverage, found.risk) == (40.0, Rate(61, 100), Rate(0, 61))
    assert found.sentence.startswith("Answering from 40.000 on, 61 % (61 of 100; ")
    assert found.sentence.endswith("0 wrong of 61 prove at most 4.8 % (95 % confidence).")


def test_few_cases_prove_nothing_and_the_sentence_says_how_many_it_takes():
    found = threshold_for([0.9, 0.8, 0.7] * 5, [False] * 15, 0.05)
    assert (found.value, found.coverage, found.risk) == (None, Rate(0, 15), Rate(0, 0))
    assert found.sentence == (
        "No threshold can promise at most 5 % wrong: 15 cases prove no less than 18.1 % wrong even without an error"
        " (95 % confidence); 59 answered without an error would."
    )


def test_enough_cases_whose_score_orders_nothing_have_no_threshold():
    """BR-45: it is said when no threshold separates."""
    found = threshold_for([0.5] * 100, [True] * 20 + [False] * 80, 0.05)
    assert found.value is None
    assert found.sentence == (
        "No threshold can promise at most 5 % wrong: the nearest to it answers 100 of 100 cases, 20 of them wrong,"
        " which proves at most 27.7 % (95 % confidence)."
    )


def test_equal_scores_are_answered_together():
    found = threshold_for([0.9] * 59 + [0.5] * 2, [False] * 60 + [True], 0.05)
    assert (found.value, found.risk) == (0.9, Rate(0, 59))


def test_strict_ends_at_the_first_threshold_that_fails():
    """One wrong answer at the top spoils the first threshold that could prove 5 %, and 120 right ones mend it."""
    scores = [float(n) for n in range(200, 0, -1)]
    wrong = [True] + [False] * 199
    assert threshold_for(scores, wrong, 0.05).value == 1.0
    assert threshold_for(scores, wrong, 0.05, strict=True).value is None
    assert threshold_for(scores, [False] * 200, 0.05, strict=True).value == 1.0


def test_no_case_has_no_threshold():
    assert threshold_for([], [], 0.05).value is None


SCORED = st.lists(st.tuples(st.integers(0, 20).map(float), st.integers(0, 9).map(lambda n: n == 0)), max_size=80)


@given(SCORED, st.sampled_from([0.1, 0.2, 0.4]), st.booleans())
def test_what_is_found_keeps_the_promise_and_nothing_lower_does_unless_strict(scored, max_wrong, strict):
    scores, wrong = [score for score, _ in scored], [bad for _, bad in scored]
    found = threshold_for(scores, wrong, max_wrong, strict=strict)

    def is_proved(threshold: float) -> bool:
        answered = [bad for score, bad in scored if score >= threshold]
        return proves_at_most(sum(answered), len(answered), max_wrong)

    if found.value is not None:
        assert is_proved(found.value)
    if not strict:
        lower = [score for score in scores if found.value is None or score < found.value]
        assert not any(map(is_proved, lower))


def test_strict_breaks_its_promise_as_seldom_as_it_says():
    """A score that orders nothing, and a true rate just above what is promised: every threshold found breaks it."""
    random = np.random.default_rng(0)
    draws = [(random.random(200).tolist(), (random.random(200) < 0.055).tolist()) for _ in range(400)]
    broken = {
        strict: sum(threshold_for(*draw, 0.05, strict=strict).value is not None for draw in draws) / len(draws)
        for strict in (False, True)
    }
    assert broken[True] <= 0.05 < broken[False] <= 0.12
