r"""`compare`: several models on the same held-out rows, with intervals and tests of their
differences.

The standard error of a difference is that of nested cross-validation where both models can leave
two folds out in closed form, else that of the corrected resampled t: see `intervals`.

The null hypothesis is that the two *ways of making a model* are equally good on training sets of
this size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..core.numerical_warnings import caught_warnings, depth_inside_package
from ..core.progress import report_progress
from ..core.splits import Splits
from ..crossval import RefitWarning, cross_validate
from ..crossval.depends import depends
from . import render
from .assess import warned
from .data import AssessedRows, on_host, splitters
from .folds import rounds_of, splits_of
from .intervals import HeldOutValues, holm, interval_of
from .result import Assessment, Estimate, plain
from .scores import share_of, values_of

REPEATS = 10
CLEARLY = 0.003  # p-value below which another model is called clearly better

# scores that are means over rows, computed from the truth and the prediction
RowScore = Callable[[np.ndarray, np.ndarray], np.ndarray]
ROW_SCORES: dict[str, RowScore] = {
    "accuracy": lambda y, said: np.asarray(y == said, dtype=np.float64),
    "neg_mean_absolute_error": lambda y, said: -np.abs(y - said),
    "neg_mean_squared_error": lambda y, said: -((y - said) ** 2),
}


@dataclass(frozen=True)
class Difference:
    """Difference between the mean held-out scores of two models on the same splits.

    Attributes
    ----------
    first, second : str
        Names of the two models.
    value : float
        Score of the first minus score of the second: positive if the first is better.
    low, high : float
        The interval.
    pvalue : float
        Two-sided p-value of the hypothesis that the two ways of making a model are equally good,
        corrected over all pairs (Holm).
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    pvalue: float

    def __neg__(self) -> Difference:
        ends = -self.value, -self.high, -self.low
        return Difference(self.second, self.first, *ends, self.pvalue)

    def __str__(self) -> str:
        return f"{self.first} - {self.second}: {self.estimate}, p = {render.p_value(self.pvalue)}"

    @property
    def estimate(self) -> str:
        """The difference with its interval, signs shown."""
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison:
    """Held-out scores of several models on the same splits, and all differences between them.

    Returned by `compare`. `print` shows two short tables; a notebook shows HTML.

    Attributes
    ----------
    score_name : str
        Name of the score; higher is better.
    scores : dict of str to Estimate
        The mean score of each model, with its interval.
    differences : tuple of Difference
        Every pair, in the order in which the models were given.
    split_scores : dict of str to array of shape (n_splits,)
        The score of each model on every split.
    n_samples, n_splits : int
    test_share : float
        Mean ratio of test rows to training rows, which the corrected resampled t test uses.
    method : str
        How the standard error of the first difference was computed.
    refitted : tuple of str
        Models that were refitted on every training set.
    level : float
        Level of all intervals.
    cv : str
        Description of the splits.
    """

    score_name: str
    scores: Mapping[str, Estimate]
    differences: tuple[Difference, ...]
    split_scores: Mapping[str, np.ndarray]
    n_samples: int
    n_splits: int
    test_share: float
    method: str
    refitted: tuple[str, ...]
    level: float
    cv: str

    def difference(self, first: str, second: str) -> Difference:
        """The difference between two models, by name and in either order."""
        for one in self.differences:
            for found in (one, -one):
                if (found.first, found.second) == (first, second):
                    return found
        raise ValueError(
            f"first and second must be two different names out of {list(self.scores)}, got "
            f"{first!r} and {second!r} instead."
        )

    @property
    def best(self) -> str:
        """The name of the model with the highest mean score."""
        return max(self.scores, key=lambda name: self.scores[name].value)

    def clearly_better(self, name: str) -> str | None:
        """The best model, if it is clearly better than this one; None otherwise."""
        if self.best == name or self.difference(self.best, name).pvalue >= CLEARLY:
            return None
        return self.best

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python objects, for JSON; NaN becomes None."""
        return dict(plain(vars(self)))

    def __str__(self) -> str:
        return render.as_text(render.comparison(self))

    def __repr__(self) -> str:
        said = render.joined(self.differences)
        return f"<ModelComparison: {render.score_name(self.score_name)}; {said}>"

    def _repr_html_(self) -> str:
        return render.as_html(render.comparison(self))


def compare(
    a: Any,
    b: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    confounds: Any = None,
    cv: Any = None,
    repeats: int | None = None,
    scoring: Any = None,
    level: float = 0.95,
    random_state: int = 0,
) -> ModelComparison:
    """Test whether one model is better than another: differences of held-out scores on the same
    splits, with intervals and p-values, for two models or more.

    All tuning and scaling is repeated in every training set. Models from other libraries are
    refitted, with one warning.

    Parameters
    ----------
    a, b : estimator, Assessment, list of these, or dict of names to these
        The models: those of `a`, then those of `b`. An `Assessment` stands for its held-out
        predictions: the other models are then fitted in its folds.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows; not needed if all models are assessments.
    y : array-like of shape (n_samples,)
        Labels or numbers.
    groups : array-like of shape (n_samples,), default=None
        Rows of one group are tested together.
    sample_weight : array-like of shape (n_samples,), default=None
        Used for fits and scores.
    confounds : table or array of shape (n_samples,) or (n_samples, n_confounds), default=None
        Variables to adjust for, as in `assess`; only for models of fitonce.
    cv : int, splitter, list of splits, or None, default=None
        Number of folds, shuffled and stratified for classifiers; None takes as many as `assess`. Or
        a splitter.
    repeats : int, default=None
        How often to repeat the cross-validation with new folds. None: 10, or 1 for a splitter.
    scoring : str, callable or None, default=None
        A scikit-learn scorer. None: accuracy, or R² of all held-out rows.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed for folds.

    Returns
    -------
    ModelComparison
        The scores, and a difference for every two models.

    Notes
    -----
    R² (None) of a split is 1 - MSE/v, where v is the variance of the target in all rows. The mean
    over splits is then the R² of all held-out rows. "r2" is scikit-learn's score, which divides by
    the variance of the few rows of each split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> rbf = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
    >>> linear = KernelFisherDiscriminant("linear", alpha=0.1)
    >>> result = compare({"rbf": rbf}, {"linear": linear}, X, y)
    >>> print(result.difference("linear", "rbf"))
    linear - rbf: +0.018 [-0.018, +0.054], p = 0.2865
    """
    models = _named(a, b)
    assessed = [model for model in models.values() if isinstance(model, Assessment)]
    fresh = {name: model for name, model in models.items() if not isinstance(model, Assessment)}
    _check(models, level, repeats)
    given = groups, sample_weight, confounds
    data = {name: AssessedRows.of(model, X, y, *given) for name, model in fresh.items()}
    rows: Assessment | AssessedRows
    if assessed and fresh and np.any(assessed[0].fold < 0):
        raise ValueError(
            "this assessment has rows that are never tested, so its training rows are not known: "
            "compare the models themselves, with its cv."
        )
    if assessed:
        rows, (partitions, said) = assessed[0], _splits_of(assessed)
    else:
        rows = next(iter(data.values()))
        partitions, said = _splits(cv, rows, repeats, random_state)
    score, named = _row_score(scoring, rows, sample_weight), _name_of(scoring, rows)
    if assessed and score is None:
        raise ValueError("with assessments, scoring must be None or the mean of a score of rows.")
    held: dict[str, HeldOutValues] = {}
    with caught_warnings() as caught:
        for number, (name, model) in enumerate(models.items()):
            report_progress(number, len(models), "models compared")
            if isinstance(model, Assessment):
                held[name] = _assessed(model, partitions[0], score, groups, sample_weight)
            elif score is None:
                held[name] = _scored(model, data[name], partitions, scoring)
            else:
                held[name] = _predicted(model, data[name], partitions, score)
        report_progress(len(models), len(models), "models compared")
    refitted = tuple(n for n, m in fresh.items() if depends(m, X).refit is not None)
    _check_scores(held)
    _tell(refitted, caught)
    pairs = list(combinations(models, 2))
    apart = [held[one].minus(held[other]) for one, other in pairs]
    pvalues = holm([values.pvalue() for values in apart])
    return ModelComparison(
        score_name=named,
        scores={name: _estimate(held[name], level, named) for name in models},
        differences=tuple(
            Difference(*pair, values.mean, *interval_of(values, level)[:2], float(p))
            for pair, values, p in zip(pairs, apart, pvalues, strict=True)
        ),
        split_scores={name: held[name].split_means for name in models},
        n_samples=len(rows.y),
        n_splits=sum(map(len, partitions)),
        test_share=next(iter(held.values())).test_share,
        method=apart[0].error()[2],
        refitted=refitted,
        level=level,
        cv=said,
    )


def _named(a: Any, b: Any) -> dict[str, Any]:
    """All models by name; unnamed ones are called by their class, numbered if needed."""
    pairs: list[tuple[str | None, Any]] = []
    for given in (a, b):
        if isinstance(given, Mapping):
            pairs += [(str(name), model) for name, model in given.items()]
        elif isinstance(given, Sequence) and not hasattr(given, "fit"):
            pairs += [(None, model) for model in given]
        elif given is not None:
            pairs.append((None, given))
    kinds = [type(model).__name__ if name is None else name for name, model in pairs]
    numbered = [
        kind
        if kinds.count(kind) == 1 or name is not None
        else f"{kind} {kinds[:i].count(kind) + 1}"
        for i, (kind, (name, _)) in enumerate(zip(kinds, pairs, strict=True))
    ]
    models = dict(zip(numbered, (model for _, model in pairs), strict=True))
    if len(models) < max(2, len(pairs)):
        raise ValueError(
            f"a comparison needs at least two models with different names, got {numbered} "
            "instead. Name them in a dictionary."
        )
    return models


def _check(models: Mapping[str, Any], level: float, repeats: int | None) -> None:
    for name, model in models.items():
        if not (hasattr(model, "fit") or isinstance(model, Assessment)):
            raise TypeError(f"{name!r} must be an estimator with a method fit, got {model!r}.")
    if len({_classifies(model) for model in models.values()}) > 1:
        raise ValueError(
            "models must be all classifiers or all regressors, got both: their scores cannot be "
            "compared."
        )
    for name, value, fine, wanted in (
        ("level", level, 0 < level < 1, "between 0 and 1"),
        ("repeats", repeats, repeats is None or repeats >= 1, "None or a positive integer"),
    ):
        if not fine:
            raise ValueError(f"{name} must be {wanted}, got {value!r} instead.")


def _classifies(model: Any) -> bool:
    if isinstance(model, Assessment):
        return model.classes is not None
    return bool(is_classifier(model))


def _splits_of(assessed: Sequence[Assessment]) -> tuple[list[Splits], str]:
    """The folds of assessments, of the first repeat, which must be the same."""
    first = assessed[0]
    if not all(np.array_equal(first.fold, other.fold) for other in assessed):
        raise ValueError(
            "assessments can be compared only on the same folds, but these differ: scores are "
            "paired by row. Use the same rows, cv and random_state for all."
        )
    tests = [np.flatnonzero(first.fold == number) for number in range(first.n_splits)]
    rows = np.arange(len(first.y))
    return [[(np.setdiff1d(rows, test), test) for test in tests]], first.cv


def _splits(
    cv: Any, data: AssessedRows, repeats: int | None, random_state: int
) -> tuple[list[Splits], str]:
    """The splits of all repeats, and their description. Splits whose test sets overlap are no
    partition, and stand alone.
    """
    own = cv is None or isinstance(cv, (int, np.integer))
    repeats = (REPEATS if own else 1) if repeats is None else repeats
    rows = np.arange(len(data.y))
    found = splitters(cv, data, repeats, random_state)
    if own:
        partitions = [splits_of(splitter, data) for splitter in found]
        return partitions, f"{len(partitions[0])} folds" + f", {repeats} times" * (repeats > 1)
    given = cv.split(rows[:, None], data.y, groups=data.groups) if hasattr(cv, "split") else cv
    splits = [(rows[train], rows[test]) for train, test in given]
    tested = np.concatenate([test for _, test in splits])
    apart = len(np.unique(tested)) == len(tested)
    return [splits] if apart else [[split] for split in splits], f"{len(splits)} splits"


def _name_of(scoring: Any, data: AssessedRows | Assessment) -> str:
    if scoring is None:  # an AUC is no mean over rows
        return "accuracy" if data.score_name == "roc_auc" else data.score_name
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")


def _row_score(
    scoring: Any, data: AssessedRows | Assessment, sample_weight: Any
) -> RowScore | None:
    """The score of a row, if the score is a mean over rows."""
    if scoring is None and data.score_name == "balanced_accuracy":
        labels, codes = np.unique(data.y, return_inverse=True)
        w = None if sample_weight is None else on_host(sample_weight)
        total = np.bincount(codes, weights=w)
        each = total.sum() / (len(labels) * total)
        return lambda y, said: (y == said) * each[np.searchsorted(labels, y)]
    if scoring is None and data.classes is None:
        variance = float(np.var(data.y))
        if variance == 0.0:
            raise ValueError("the target must vary, got one value in all rows: R² is not defined.")
        return lambda y, said: 1.0 - (y - said) ** 2 / variance
    name = "accuracy" if scoring is None else scoring
    return ROW_SCORES.get(name) if isinstance(name, str) else None


def _predicted(
    model: Any, data: AssessedRows, partitions: list[Splits], score: RowScore
) -> HeldOutValues:
    """The scores of rows from held-out predictions."""
    rounds = rounds_of(model, data, partitions, 0)
    values = values_of(data, rounds, lambda answers, _: score(data.y, answers.predictions))
    if len(partitions) > 1 and len(partitions[0]) == 1:
        return replace(values, n_partitions=1, inner=[])
    return values


def _scored(
    model: Any, data: AssessedRows, partitions: list[Splits], scoring: Any
) -> HeldOutValues:
    """The scores of splits by a scorer; every split counts as one unit."""
    splits = [split for part in partitions for split in part]
    given: dict[str, Any] = {"cv": splits, "params": data.params, "error_score": "raise"}
    found = cross_validate(model, data.X, data.y, scoring=scoring, **given)["test_score"]
    each, J = np.arange(len(splits)), len(splits)
    alone = len(partitions) > 1 and len(partitions[0]) == 1
    return HeldOutValues(
        tests=list(each[:, None]),
        values=list(np.asarray(found, dtype=np.float64)[:, None]),
        inner=[],
        units=each,
        weights=np.ones(J),
        test_share=share_of([splits]),
        n_partitions=1 if alone else len(partitions),
    )


def _assessed(
    answer: Assessment, splits: Splits, score: Any, groups: Any, sample_weight: Any
) -> HeldOutValues:
    """The scores of rows of an assessment."""
    tests, n = [test for _, test in splits], len(answer.y)
    units = np.arange(n) if groups is None else np.unique(on_host(groups), return_inverse=True)[1]
    return HeldOutValues(
        tests=tests,
        values=[score(answer.y[test], answer.predictions[test]) for test in tests],
        inner=[score(answer.y, predicted) for predicted in answer.inner],
        units=units.reshape(-1),
        weights=np.ones(n) if sample_weight is None else on_host(sample_weight),
        test_share=share_of([splits]),
    )


def _check_scores(held: Mapping[str, HeldOutValues]) -> None:
    for name, one in held.items():
        undefined = int(np.sum(~np.isfinite(one.split_means)))
        if undefined:
            raise ValueError(
                f"{name!r} has no score on {undefined} of {len(one.tests)} splits, so differences "
                "cannot be paired. Use fewer folds, or a score that is defined for every test set."
            )


def _tell(refitted: Sequence[str], caught: Iterable[warnings.WarningMessage]) -> None:
    """Issue the warnings of all fits, each kind once; one about refitting for all models."""
    depth = depth_inside_package()
    for text, category in warned(w for w in caught if not issubclass(w.category, RefitWarning)):
        warnings.warn(text, category, stacklevel=depth)
    if refitted:
        warnings.warn(
            f"fitonce has no closed form for {render.joined(refitted)}: refitting on every "
            "training set, as scikit-learn does.",
            RefitWarning,
            stacklevel=depth,
        )


def _estimate(values: HeldOutValues, level: float, name: str) -> Estimate:
    low, high, method = interval_of(values, level, "share" if name == "accuracy" else "")
    return Estimate(values.mean, low, high, level, method)
