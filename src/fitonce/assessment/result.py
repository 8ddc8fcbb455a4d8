"""The result `Assessment`, simple enough for JSON, a terminal or a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from ..crossval import Route
from ..inference import PermutationTest
from . import render


@dataclass(frozen=True)
class Estimate:
    """A score with its interval: `low` and `high` at the given `level`, computed by `method`.

    NaN if there is no interval.
    """

    value: float
    low: float
    high: float
    level: float
    method: str

    def __str__(self) -> str:
        if np.isnan(self.low):
            return render.number(self.value)
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class CalibrationCurve:
    """A reliability curve over bins with equal numbers of held-out rows: mean probability, observed
    frequency, and number of rows in each bin.

    `of` names the probability: of the second class for two classes, of the predicted class for
    more.
    `error` is the expected calibration error, the mean of |predicted - observed| over rows.
    """

    of: str
    predicted: np.ndarray
    observed: np.ndarray
    count: np.ndarray

    @property
    def error(self) -> float:
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.count))


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """The evaluation of an estimator. Returned by `assess`.

    `print` shows a short table; a notebook shows HTML.

    Every score is nested: all tuning and scaling was repeated in each training set. Arrays with one
    entry per row belong to the first repeat.

    Attributes
    ----------
    task : {"classification", "regression"}
    n_samples, n_features : int
    classes : array or None
        Sorted labels, in the order of `probabilities` and `confusion`; None for regression.
    class_counts : array or None
        Number of rows of each class.
    y : array of shape (n_samples,)
        The target as given.
    predictions : array of shape (n_samples,)
        Held-out predictions; None (NaN) for rows that `cv` never tests.
    probabilities : array of shape (n_samples, n_classes) or None
    decisions : array of shape (n_samples,) or (n_samples, n_classes), or None
        Held-out decision values.
    fold : array of shape (n_samples,)
        Index of the split in which the row was tested; -1 for rows that `cv` never tests.
    score_name : {"accuracy", "balanced_accuracy", "roc_auc", "r2"}
        The main score.
    score, baseline : Estimate
        The main score over all held-out rows; and that of a constant answer, the most frequent
        class (or the mean).
    metrics, baseline_metrics : dict of str to float
        Scores of the pooled held-out rows, averaged over repeats: accuracy, balanced_accuracy,
        roc_auc (one against the rest), log_loss, brier; or r2, mae, rmse.
    intervals : dict of str to Estimate
        The same scores of the estimator, with their intervals; NaN where there is none.
    fold_scores : dict of str to array of shape (repeats, folds)
        The main score (and balanced accuracy, or mae and rmse) of every split.
    confusion : array of shape (n_classes, n_classes) or None
        Number of rows (or sum of weights) of class i predicted as j, in the first repeat.
    calibration : CalibrationCurve or None
    permutation : PermutationTest or None
        The permutation test; None if there is none, for which `warnings` says why.
    permutation_statistic : str
        The model that was scored under each permutation.
    permutation_rows : int
        Number of rows in the permutation test.
    choices : list of dict
        The settings chosen in each split: alpha, gamma, penalty and so on.
    repeats, n_splits : int
        Number of repeats, and of splits in each.
    cv : str
        Description of the splitter.
    grouped, weighted : bool
        Whether groups were kept together, and whether rows had weights.
    test_share : float
        Mean ratio of test rows to training rows, which the corrected resampled t test uses.
    route : Route
        How the cross-validation was computed.
    warnings : tuple of str
        Warnings, one sentence each.
    level : float
        Level of all intervals.
    random_state : int
    record : dict
        What it takes to make the result again: versions, random_state, route, and a hash of the
        rows (`data`).
    seconds : float
    auc_method : str
        How the area under the ROC curve was computed.
    confounds : str
        The confounds and how they were used; empty if there were none.
    inner : sequence of arrays of shape (n_samples,)
        For every split, predictions of its training rows by models without its test fold and the
        fold of the row, from which the intervals come; empty for models that are refitted.
    """

    task: str
    n_samples: int
    n_features: int
    classes: np.ndarray | None
    class_counts: np.ndarray | None
    y: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray | None
    decisions: np.ndarray | None
    fold: np.ndarray
    score_name: str
    score: Estimate
    baseline: Estimate
    metrics: Mapping[str, float]
    intervals: Mapping[str, Estimate]
    baseline_metrics: Mapping[str, float]
    fold_scores: Mapping[str, np.ndarray]
    confusion: np.ndarray | None
    calibration: CalibrationCurve | None
    permutation: PermutationTest | None
    permutation_statistic: str
    permutation_rows: int
    choices: list[dict[str, Any]]
    repeats: int
    n_splits: int
    cv: str
    grouped: bool
    weighted: bool
    test_share: float
    route: Route
    warnings: tuple[str, ...]
    level: float
    random_state: int
    record: Mapping[str, Any]
    seconds: float
    auc_method: str = ""
    confounds: str = ""
    inner: Sequence[np.ndarray] = ()

    def __str__(self) -> str:
        return render.as_text(render.assessment(self))

    def __repr__(self) -> str:
        p = "" if self.permutation is None else f", p = {render.p_value(self.permutation.pvalue)}"
        said = f"{render.SCORES[self.score_name]} {self.score}, baseline {self.baseline}"
        return f"<Assessment: {said}{p}>"

    def _repr_html_(self) -> str:
        return render.as_html(render.assessment(self))

    @property
    def accuracy(self) -> Estimate:
        """The accuracy of a classification."""
        if self.classes is None:
            raise AttributeError("a regression has no accuracy; see score and metrics.")
        return self.intervals["accuracy"]

    @property
    def r2(self) -> Estimate:
        """The main score of a regression."""
        if self.score_name != "r2":
            raise AttributeError("a classification has no R²; see score and metrics.")
        return self.score

    @property
    def tested(self) -> np.ndarray:
        """Which rows have a held-out prediction."""
        return self.fold >= 0

    def to_dict(self, rows: bool = False) -> dict[str, Any]:
        """Everything as plain Python objects, for JSON and for the metadata of a saved model; NaN
        becomes None.

        Parameters
        ----------
        rows : bool, default=False
            Whether to include results for every row (and the scores of all permutations).
        """
        by_row = ("y", "predictions", "probabilities", "decisions", "fold", "inner")
        left_out = () if rows else by_row
        fields = {name: value for name, value in vars(self).items() if name not in left_out}
        if self.permutation is not None:
            fields["permutation"] = summary_of(self.permutation, rows)
        if self.calibration is not None:
            fields["calibration"] = {**vars(self.calibration), "error": self.calibration.error}
        return dict(plain(fields))


def summary_of(test: PermutationTest, rows: bool) -> dict[str, Any]:
    summary = {
        "pvalue": test.pvalue,
        "pvalue_interval": test.pvalue_interval,
        "pvalues": test.pvalues,
        "scores": test.scores,
        "null_mean": {name: float(np.mean(null)) for name, null in test.null.items()},
        "n_permutations": test.n_permutations_done,
        "mode": test.mode,
        "exchange": test.exchange,
        "exact": test.exact,
        "route": str(test.route),
    }
    return {**summary, "null": test.null} if rows else summary


def plain(value: Any) -> Any:
    """Lists, dictionaries, strings and numbers.

    NaN and infinities, which JSON does not have, become None.
    """
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(plain(name)): plain(item) for name, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
