"""`assess`: nested cross-validation, repeated and grouped if requested, with a full account of the
result; and its permutation test alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from ..core.numerical_warnings import caught_warnings, kinds_of
from ..core.progress import ProgressCallback, progress_callback
from ..crossval.depends import depends
from ..estimators.confounding import confounded_words
from ..estimators.fitted import final_step, is_model, warn_of_targets
from ..inference import PermutationTest
from . import chance, scores
from .data import AssessedRows, copies_of, n_columns, new_rows, record, splitters
from .folds import SLOW, Round, answers_of, pairs_of, rounds_of, splits_of
from .ranking import auc_of
from .render import joined
from .result import Assessment, Estimate

SPLITTERS = {
    StratifiedKFold: "{} stratified folds",
    KFold: "{} folds",
    StratifiedGroupKFold: "{} stratified folds that keep groups together",
    GroupKFold: "{} folds that keep groups together",
    TimeSeriesSplit: "{} spans, each predicted from the rows before it",
}

PARTITIONS = 10  # for the standard error
ROWS = 400_000  # of all partitions together, with the answers of ten models for each
TUNED = 5  # of models that are tuned, whose folds are fits: with three, R² covers two points less
SECONDS, PER_CUBE = 20.0, 1e-8  # for these; of a search on one core, over cubed rows
IGNORED = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
Doubt = tuple[str, type[Warning]]


def assess(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    confounds: Any = None,
    cv: Any = None,
    repeats: int = 1,
    score: str | None = None,
    level: float = 0.95,
    permutations: int | str = "auto",
    statistic: str = "auto",
    random_state: int = 0,
    losses: Mapping[str, scores.Loss] | None = None,
    progress: ProgressCallback | None = None,
) -> Assessment:
    """Evaluate an estimator: honest scores with intervals, a baseline, a p-value, and the settings
    that were chosen.

    Tuning and preprocessing are repeated in every training set (nested cross-validation). The
    p-value is that of `fitonce.permutation_test_score`.

    Parameters
    ----------
    estimator : classifier or regressor
        An estimator of fitonce, or a pipeline that ends in one. Others are refitted, with a
        warning.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels or numbers.
    groups : array-like of shape (n_samples,), default=None
        Rows of one group are tested together; intervals and permutations treat a group as one unit.
        None: exact copies of a row are one group, with a warning.
    sample_weight : array-like of shape (n_samples,), default=None
        Used for fits, scores and intervals, but not for the scores of the permutation test.
    confounds : table or array of shape (n_samples,) or (n_samples, n_confounds), default=None
        Variables to adjust for, such as age and site; permutations leave them in place.
    cv : int, splitter or None, default=None
        Number of folds, shuffled and stratified for a classifier; None takes 5 above 500 rows and 5
        to 10 below. Or a splitter that tests each row at most once. With "prefit", the estimator is
        fitted already and the rows are new to it: they are predicted and scored once.
    repeats : int, default=1
        How often to repeat the cross-validation with new folds.
    score : {"accuracy", "balanced_accuracy", "roc_auc"} or None, default=None
        The main score of a classification; None takes accuracy, or balanced accuracy if the model
        never predicts one of the classes.
    level : float, default=0.95
        Level of the intervals: those of nested cross-validation, or of the corrected resampled t
        where these would need refits. `score.method` says which.
    permutations : int or "auto", default="auto"
        Number of permutations; 0 for no test. "auto" uses 999, on a random sample of 1000 rows
        (fewer for more than two classes) if there are more.
    statistic : {"auto", "same", "quick"}, default="auto"
        The model that is scored under permutations: "same", the estimator itself, tuned again;
        "quick", the same kernels on a coarser lattice; "auto" chooses by the size of the data.
        ``permutation.score`` is the score of what was tested.
    random_state : int, default=0
        Seed for folds and permutations.
    losses : dict of str to callable, default=None
        Losses of your own, which get intervals too: functions of the targets and the held-out
        predictions that return one number per row.
    progress : callable, default=None
        Called as ``progress(done, total, what)`` during the work; `total` is 0 if it is not known.

    Returns
    -------
    Assessment
        Scores, predictions and settings of every split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant, assess
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[:120], y[:120]  # the others hold a copy
    >>> answer = assess(KernelFisherDiscriminant(gamma=0.2, alpha=0.1), X, y, permutations=199)
    >>> print(answer.accuracy, "baseline", answer.baseline, "p =", answer.permutation.pvalue)
    0.975 [0.928, 0.992] baseline 0.417 p = 0.005
    >>> answer.accuracy.method
    'nested cross-validation, 10 folds, 10 times'
    """
    start = time.perf_counter()
    _check(repeats, level, permutations, statistic)
    own = cv is None or isinstance(cv, (int, np.integer))
    prefit, copies = isinstance(cv, str) and cv == "prefit", ""
    data = AssessedRows.of(estimator, X, y, groups, sample_weight, confounds)
    if own and groups is None:
        groups, copies = copies_of(X, data.y)
        data = AssessedRows.of(estimator, X, y, groups, sample_weight, confounds)
    if score is not None:
        data = replace(data, lead=_lead(score, data))
    told = nullcontext() if progress is None else progress_callback(progress)
    auc_method = ""
    with told, caught_warnings() as caught:
        warn_of_targets(estimator)
        if prefit:
            data, permutations = new_rows(estimator, data), 0
        given = dict(losses or {})
        most = n_partitions(estimator, data) if own else 1
        cvs = [cv] if prefit else splitters(cv, data, max(repeats, most), random_state)
        if prefit:
            found = [answers_of(estimator, data, confounds)]
        else:
            partitions = [splits_of(each, data) for each in cvs]
            nested = all(pairs_of(splits, data) for splits in partitions)
            found = rounds_of(estimator, data, partitions[: None if nested else repeats], repeats)
        rounds = found[:repeats]
        if score is None and _never(data, rounds[0]):
            data = replace(data, lead="balanced_accuracy")
        baseline = scores.baseline(data, rounds[0])
        metrics, constant = (scores.pooled_scores(data, r, given) for r in (rounds, [baseline]))
        # pooled rows would be ranked against the priors of their folds
        if data.classes is not None:
            constant["roc_auc"] = 0.5
            metrics["roc_auc"], auc_method = auc_of(estimator, data, rounds)
        intervals = scores.estimates(data, metrics, found, given, level)
        test, said, test_rows = _chance(
            estimator,
            data,
            cvs[0],
            rounds[0],
            permutations,
            statistic,
            random_state,
        )
    first = rounds[0]
    doubts = [*warned(caught), *_about_rows(data, first)]
    doubts += [(copies, UserWarning)] * bool(copies)
    if permutations != 0 and test is None:
        doubts.append((f"no permutation test: {said.rstrip('.')}.", UserWarning))
    for message, category in doubts:
        warnings.warn(message, category, stacklevel=2)
    return Assessment(
        task="regression" if data.classes is None else "classification",
        n_samples=len(data.y),
        n_features=n_columns(X),
        classes=data.classes,
        class_counts=None if data.classes is None else np.sum(data.y[:, None] == data.classes, 0),
        y=data.y,
        predictions=first.predictions,
        probabilities=first.probabilities,
        decisions=first.decisions,
        fold=first.fold,
        score_name=data.score_name,
        score=intervals[data.score_name],
        baseline=Estimate(constant[data.score_name], np.nan, np.nan, level, "a constant"),
        metrics=metrics,
        intervals=intervals,
        baseline_metrics=constant,
        fold_scores=scores.split_scores(data, rounds),
        confusion=scores.confusion(data, first),
        calibration=scores.calibration(data, first),
        permutation=test,
        permutation_statistic=said,
        permutation_rows=test_rows,
        choices=[choice for round_ in rounds for choice in round_.choices],
        repeats=repeats,
        n_splits=len(first.splits),
        cv=_in_words(cvs[0], len(first.splits), repeats),
        grouped=data.groups is not None,
        weighted=data.weights is not None,
        confounds=confounded_words(estimator, confounds, len(data.y)),
        test_share=scores.share_of([round_.splits for round_ in rounds]),
        route=first.route,
        warnings=tuple(message for message, _ in doubts),
        level=level,
        random_state=random_state,
        record=record(data, random_state, first.route),
        seconds=time.perf_counter() - start,
        auc_method=auc_method,
        inner=[] if first.inner is None else list(first.inner.predictions),
    )


def n_partitions(estimator: Any, data: AssessedRows) -> int:
    """Partitions from which the standard error comes: as many as fit into memory and, in fits,
    into `SECONDS`; two if calibrations take long; one of a model whose folds cannot be left out in
    pairs. Depends on the size alone: the same call gives the same interval on every machine.
    """
    kept = ROWS // len(data.y)
    if getattr(final_step(estimator), "calibration", None) in SLOW:
        kept = min(kept, 2)
    method = "predict" if data.classes is None else "decision_function"
    if depends(estimator, data.X, data.params, method=method).route.name == "one":
        return int(np.clip(kept, 1, PARTITIONS))
    if not is_model(final_step(estimator)):
        return 1
    quick = SECONDS / (10 * (0.03 + PER_CUBE * len(data.y) ** 3))
    return int(np.clip(min(kept, quick), 1, TUNED))


def significance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    confounds: Any = None,
    cv: Any = None,
    permutations: int = 999,
    statistic: str = "quick",
    permute: str | None = None,
    exchange: str | None = None,
    most_rows: int | None = None,
    checkpoint: Any = None,
    random_state: int = 0,
) -> tuple[PermutationTest, str]:
    """The permutation test of `assess` alone, with a description of its statistic.

    Parameters are those of `assess` and of `permutation_test_score`; with `most_rows`, a random
    sample of so many rows is tested.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.assessment import significance
    >>> X, y = load_iris(return_X_y=True)
    >>> test, statistic = significance(KernelFisherDiscriminant(), X, y, permutations=99)
    >>> test.pvalue, test.mode
    (0.01, 'within-folds')
    """
    _check(1, 0.95, permutations, statistic)
    data = AssessedRows.of(estimator, X, y, groups, confounds=confounds)
    test, said, _ = chance.tested(
        estimator,
        data,
        splitters(cv, data, 1, random_state)[0],
        statistic,
        permutations,
        permute=permute,
        exchange=exchange,
        most_rows=most_rows,
        checkpoint=checkpoint,
        random_state=random_state,
    )
    return test, said


def _chance(
    estimator: Any,
    data: AssessedRows,
    cv: Any,
    round_: Round,
    permutations: int | str,
    statistic: str,
    random_state: int,
) -> tuple[PermutationTest | None, str, int]:
    """The test, its statistic and its number of rows; or None, the reason why there is none, and
    0.
    """
    if permutations == 0:
        return None, "", 0
    automatic = permutations == "auto"
    count = chance.PERMUTATIONS if automatic else int(permutations)
    if statistic == "auto":
        statistic = chance.affordable(estimator, data, count)
    try:
        return chance.tested(
            estimator,
            data,
            cv if hasattr(cv, "split") else round_.splits,
            statistic,
            count,
            most_rows=chance.most_rows(data) if automatic else None,
            random_state=random_state,
            single=all(len(rows) == 1 for _, rows in round_.splits),
        )
    except ValueError as error:
        if not automatic:
            raise
        return None, str(error), 0


def warned(caught: Iterable[warnings.WarningMessage]) -> list[Doubt]:
    """Warnings that differ in more than numbers, with how often each occurred."""
    said = ((w.category, str(w.message)) for w in caught if not issubclass(w.category, IGNORED))
    return [
        (texts[0] if len(texts) == 1 else f"{texts[0]} ({len(texts)} times)", category)
        for category, texts in kinds_of(said)
    ]


def _about_rows(data: AssessedRows, round_: Round) -> list[Doubt]:
    """Warnings about rows that are never tested, and about rows whose class is missing from their
    training set, which no model can predict.
    """
    doubts = []
    untested = len(data.y) - len(round_.tested)
    if untested:
        doubts.append(
            f"{untested} of {len(data.y)} rows are never tested by this cv and have no held-out "
            "prediction."
        )
    labels = data.classes is not None
    splits = [split for split in round_.splits if labels and len(split[0])]
    if splits and all(len(test) == 1 for _, test in splits) and data.groups is None:
        doubts.append(
            "leave-one-out makes the class of the left-out row the smaller one, so that the "
            "accuracy of a weak model comes out too low. Use folds for accuracy: cv=None."
        )
    lost = [row for train, test in splits for row in test[~np.isin(data.y[test], data.y[train])]]
    if lost:
        names = joined(np.unique(data.y[lost]).tolist(), 3)
        doubts.append(
            f"rows of a class ({names}) that is missing from their training rows: {len(lost)} of "
            f"{len(data.y)}. They count as wrong, with probability 0, which has a large effect on "
            "the log-loss. Leave out such classes, merge them, or use other folds."
        )
    return [(doubt, UserWarning) for doubt in doubts]


def _never(data: AssessedRows, round_: Round) -> bool:
    said = set(round_.predictions[round_.tested].tolist())
    return data.classes is not None and not set(data.y[round_.tested].tolist()) <= said


def _lead(score: Any, data: AssessedRows) -> str:
    """A main score for classes, by name."""
    wanted = ("accuracy", "balanced_accuracy", "roc_auc")
    known = [] if data.classes is None else wanted[: 3 if len(data.classes) == 2 else 2]
    if score not in known:
        raise ValueError(
            'score must be "accuracy" or "balanced_accuracy" for classes, also "roc_auc" for two, '
            f"and None for numbers, got {score!r} instead: the p-value is that of the main score."
        )
    return str(score)


def _check(repeats: Any, level: Any, permutations: Any, statistic: Any) -> None:
    whole, is_flag = (int, np.integer), isinstance(permutations, bool)
    counted = isinstance(permutations, whole) and not is_flag and permutations >= 0
    for name, value, fine, wanted in (
        ("repeats", repeats, isinstance(repeats, whole) and repeats >= 1, "a positive integer"),
        ("level", level, 0 < level < 1, "between 0 and 1"),
        (
            "permutations",
            permutations,
            permutations == "auto" or counted,
            '"auto" or a non-negative integer',
        ),
        (
            "statistic",
            statistic,
            statistic in ("auto", "same", "quick"),
            '"auto", "same" or "quick"',
        ),
    ):
        if not fine:
            raise ValueError(f"{name} must be {wanted}, got {value!r} instead.")


def _in_words(splitter: Any, n_splits: int, repeats: int) -> str:
    if splitter == "prefit":
        return "a fitted model, rows that are new to it"
    named = SPLITTERS.get(type(splitter), f"{{}} splits by {type(splitter).__name__}")
    return named.format(n_splits) + (f", {repeats} times" if repeats > 1 else "")
