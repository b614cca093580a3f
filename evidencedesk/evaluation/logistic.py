"""What a calibration is made of: a model that can be read, folds, and a threshold that keeps a promise. Pure.

1. `fit_logistic` finds how much each measure of a question counts: one weight a measure, all on one scale.
2. `folds_of` deals the cases out, so that each can be judged by a model that has not learnt from it.
3. `threshold_for` finds from where on answers are wrong seldom enough, or says that these cases cannot show it.

Everything is deterministic: no random numbers, and folds by a hash of the case ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evidencedesk.evaluation.intervals import (
    CONFIDENCE,
    needed_without_error,
    percent,
    probability_of_at_most,
    promise,
    proves_at_most,
    upper_bound,
)
from evidencedesk.evaluation.metrics import Rate, risk_coverage
from evidencedesk.guard.calibrated import NO_PROMISE
from evidencedesk.records import require_count

Floats = NDArray[np.float64]

_STEPS = 100
_SMALL_STEP = 1e-10


# ---------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """P(label) = 1 / (1 + exp(-(intercept + sum of weight x (feature - mean) / scale)))."""

    names: tuple[str, ...]
    """What each feature is."""
    means: tuple[float, ...]
    scales: tuple[float, ...]
    """Standard deviation of each feature where it was fitted; 1.0 for one that never varied."""
    weights: tuple[float, ...]
    """Per standard deviation, so they can be compared; 0.0 for a feature that was dropped or never varied."""
    intercept: float
    dropped: tuple[str, ...] = ()
    """Features whose weight came out negative though it may not be, in the order in which they went."""

    def describe(self) -> str:
        """Say in one line what counts how much, the weightiest first."""
        order = sorted(range(len(self.names)), key=lambda at: (-abs(self.weights[at]), at))
        parts = [f"{self.names[at]} {self.weights[at]:+.2f}" for at in order if self.names[at] not in self.dropped]
        dropped = f"; dropped: {', '.join(self.dropped)}" if self.dropped else ""
        counted = ", ".join(parts) or "nothing"
        return f"log-odds {self.intercept:+.2f} on average, per standard deviation: {counted}{dropped}"


def fit_logistic(
    features: ArrayLike,
    labels: Sequence[bool],
    names: Sequence[str],
    *,
    l2: float = 1.0,
    nonnegative: Collection[str] = (),
) -> LogisticModel:
    """Fit a logistic regression; features of shape (cases, features), one label a case, one name a feature.

    Minimises the sum of the log-losses plus l2 / 2 times the squared weights of the standardised features, the
    intercept free, by Newton's method, which for this model is iteratively reweighted least squares: T. Hastie,
    R. Tibshirani, J. Friedman, The elements of statistical learning (2nd ed.), 4.4.1; the penalty: S. le Cessie,
    J. C. van Houwelingen, Ridge estimators in logistic regression, Applied Statistics 41 (1992).

    `nonnegative`: names of features that may only raise the probability. While one of their weights is negative, the
    lowest is dropped and the rest fitted anew: with few cases, a high cosine must not speak against an answer.

    ValueError for shapes that do not fit, NaN or infinite features, labels all alike, an l2 that is not above 0, and
    unknown names.
    """
    rows = _rows(features, len(names))
    target = np.array([bool(label) for label in labels], dtype=np.float64)
    if len(target) != len(rows):
        raise ValueError(f"{len(rows)} rows of features and {len(target)} labels do not belong together")
    if len(set(names)) != len(names):
        raise ValueError("two features have the same name")
    if unknown := set(nonnegative) - set(names):
        raise ValueError(f"no feature has the name {', '.join(sorted(unknown))}")
    if not 0 < l2 < np.inf:
        raise ValueError(f"l2 must be above 0, not {l2!r}")
    if len(set(target.tolist())) < 2:
        raise ValueError("a model needs cases of both kinds" + (", and all labels are alike" if len(rows) else ""))

    means, scales = rows.mean(axis=0), rows.std(axis=0)
    # A feature that never varies has a deviation of 0 but for rounding, and says nothing.
    varies = scales > 1e-12 * np.maximum(1.0, np.abs(means))
    scales = np.where(varies, scales, 1.0)
    standardised = (rows - means) / scales
    kept, dropped = [at for at in range(len(names)) if varies[at]], []
    while True:
        weights = np.zeros(len(names))
        intercept, weights[kept] = _minimum(standardised[:, kept], target, l2)
        against = [at for at in kept if names[at] in nonnegative and weights[at] < 0]
        if not against:
            break
        worst = min(against, key=lambda at: weights[at])
        kept.remove(worst)
        dropped.append(names[worst])
    return LogisticModel(
        tuple(names), tuple(means.tolist()), tuple(scales.tolist()), tuple(weights.tolist()), intercept, tuple(dropped)
    )


def _minimum(features: Floats, target: Floats, l2: float) -> tuple[float, Floats]:
    """Give intercept and weights of least loss. The loss is convex, so there is one."""
    design = np.column_stack([np.ones(len(features)), features])
    penalty = np.full(design.shape[1], l2)
    penalty[0] = 0.0

    def loss(at: Floats) -> float:
        margins = design @ at
        return float(np.sum(np.logaddexp(0.0, margins) - target * margins) + penalty @ (at * at) / 2)

    found = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        expected = _sigmoid(design @ found)
        gradient = design.T @ (expected - target) + penalty * found
        curvature = (design.T * (expected * (1 - expected))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        if np.max(np.abs(step)) < _SMALL_STEP:
            break
        # Far from the minimum a full step can overshoot: halve it until the loss falls.
        before, size = loss(found), 1.0
        while loss(found - size * step) > before and size > _SMALL_STEP:
            size /= 2
        found = found - size * step
    return float(found[0]), found[1:]


def _sigmoid(margins: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -margins))


def _rows(features: ArrayLike, width: int) -> Floats:
    rows = np.asarray(features, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"features must have the shape (cases, {width}), not {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("a feature is NaN or infinite")
    return rows


# ---------------------------------------------------------------- cases that a model has not seen


def folds_of(case_ids: Sequence[str], labels: Sequence[bool], folds: int = 5) -> list[int]:
    """Give each case a fold from 0, dealt out in turn within each label, in the order of a hash of the case ids.

    So every fold has its share of both labels, whatever the order of the cases. There are as many folds as asked for,
    or as the rarer label has cases. ValueError for an id that occurs twice, different lengths, fewer than 2 folds, and
    for a label with fewer than 2 cases.
    """
    require_count("folds", folds, minimum=2)
    if len(case_ids) != len(labels) or len(set(case_ids)) != len(case_ids):
        raise ValueError("case ids must be as many as labels, and each must be another")
    rarer = min(sum(bool(label) == kind for label in labels) for kind in (False, True))
    if rarer < 2:
        raise ValueError(f"cross-validation needs 2 cases of each kind, and of one there are {rarer}")
    folds = min(folds, rarer)
    order = sorted(
        range(len(case_ids)),
        key=lambda at: (bool(labels[at]), hashlib.sha256(case_ids[at].encode()).digest()),
    )
    # Counting on through both labels keeps the folds' sizes within one of each other.
    fold = [0] * len(case_ids)
    for nth, at in enumerate(order):
        fold[at] = nth % folds
    return fold


# ---------------------------------------------------------------- a threshold that keeps a promise


@dataclass(frozen=True, slots=True)
class FoundThreshold:
    """From which score on to answer; None: no threshold keeps the promise."""

    value: float | None
    coverage: Rate
    """Answered, of all cases, at that threshold; nothing when there is none."""
    risk: Rate
    """Wrong, of the answered."""
    sentence: str
    """What is promised, or why it cannot be."""


def threshold_for(
    scores: Sequence[float],
    wrong: Sequence[bool],
    max_wrong: float,
    confidence: float = CONFIDENCE,
    *,
    strict: bool = False,
) -> FoundThreshold:
    """Find the lowest threshold at which the answers are proved to be wrong at most at the rate `max_wrong`.

    Answered are the scores of at least the threshold; `wrong` says of each case whether an answer to it is wrong, which
    an answer to an unanswerable question always is. Proved means Clopper and Pearson's upper bound, as in
    Y. Geifman, R. El-Yaniv, Selective classification for deep neural networks, NIPS 2017. Scores should be by models
    that have not seen the case (`folds_of`). ValueError as `upper_bound` and `auroc`.

    The confidence is that of one threshold, and the lowest of all is picked. Drawn at random from 60 to 500 cases, the
    promise was broken in at most 4.3 % of the draws where the score orders the cases, but in up to 11 % where it orders
    nothing and the true rate lies just above `max_wrong`. `strict` ends the search at the first threshold, from
    the highest that could prove it down, that fails: then the confidence holds for whatever is found (testing in
    fixed sequence: A. N. Angelopoulos and others, Learn then test, 2021), and fewer questions are answered.
    """
    enough = needed_without_error(max_wrong, confidence)
    found = nearest = None
    for point in risk_coverage(scores, wrong):
        errors, answered = int(point.risk.count), point.risk.of
        if answered < enough:
            continue  # decided by the scores alone, so it costs no confidence
        doubt = probability_of_at_most(errors, answered, max_wrong)
        nearest = min(nearest or (doubt, errors, answered), (doubt, errors, answered))
        if proves_at_most(errors, answered, max_wrong, confidence):
            found = point
        elif strict:
            break
    sure = f"({percent(confidence)} confidence)"
    if found:
        kept = promise(int(found.risk.count), found.risk.of, max_wrong, confidence)
        sentence = f"Answering from {found.threshold:.3f} on, {found.coverage}. {kept.sentence}"
        return FoundThreshold(found.threshold, found.coverage, found.risk, sentence)
    if nearest is None:
        even = promise(0, len(scores), max_wrong, confidence)
        why = f"{len(scores)} cases prove no less than {percent(even.upper)} wrong even without an error {sure}; "
        why += f"{enough} answered without an error would."
    else:
        _, errors, answered = nearest
        proved = percent(upper_bound(errors, answered, confidence))
        why = f"the nearest to it answers {answered} of {len(scores)} cases, {errors} of them wrong, which proves at "
        why += f"most {proved} {sure}."
    sentence = f"{NO_PROMISE} can promise at most {percent(max_wrong)} wrong: {why}"
    return FoundThreshold(None, Rate(0, len(scores)), Rate(0, 0), sentence)
