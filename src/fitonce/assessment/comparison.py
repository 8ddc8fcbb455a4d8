r"""`compare`: several models on the same held-out rows, with intervals and tests of their
differences.

Every model is scored on the same J splits; d_k is the difference between two models on split k.

**Interval.** Splits share training rows, so the variance s²/J of the mean difference is too small.
It is replaced by (1/J + n_test/n_train) s², with J - 1 degrees of freedom (Nadeau & Bengio 2003).

**Sign flips.** If a score is a mean over rows, row i adds

    c_i = Σ_{k: i tested in k} (a_ik - b_ik) / (J n_k)

to the mean difference Σ_i c_i, where a and b are the scores of the rows and n_k is the number of
test rows in split k. If the models are equally good, a and b of a row can be exchanged. The p-value
is the share of all sign flips for which |Σ_i ±c_i| reaches |Σ_i c_i|; with groups, the rows of a
group flip together.
For accuracies of one partition this is McNemar's exact test.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..core.doubt import caught_warnings, depth_inside_package
from ..core.progress import say
from ..crossval import RefitWarning, cross_val_predict, cross_validate
from ..crossval.routes import choose_route
from ..inference.result import reaches
from .assess import warned
from .compared import Difference, ModelComparison
from .data import AssessedRows, on_host, splitters
from .folds import Splits
from .intervals import corrected_t, paired_t
from .render import joined
from .result import Estimate

REPEATS = 10
BLOCK_ELEMENTS = 4_000_000  # signs in memory

# scores that are means over rows, computed from the truth and the prediction
ROW_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "accuracy": lambda y, said: np.asarray(y == said, dtype=np.float64),
    "neg_mean_absolute_error": lambda y, said: -np.abs(y - said),
    "neg_mean_squared_error": lambda y, said: -((y - said) ** 2),
}


@dataclass(frozen=True)
class Held:
    """The scores of one model: of every split (J,) and, if these are means over rows, of the test
    rows of every split.
    """

    splits: np.ndarray
    rows: list[np.ndarray] | None


def compare(
    a: Any,
    b: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    repeats: int | None = None,
    scoring: Any = None,
    level: float = 0.95,
    n_permutations: int = 9999,
    random_state: int = 0,
) -> ModelComparison:
    """Test whether one model is better than another: differences of held-out scores on the same
    splits, with intervals and p-values, for two models or more.

    Each model is cross-validated with `fitonce.cross_validate`; all its tuning and scaling is
    repeated in every training set. Models from other libraries are refitted, with one warning.

    Parameters
    ----------
    a, b : estimator, list of estimators, or dict of names to estimators
        The models: those of `a`, then those of `b`. Any classifiers, or any regressors, with the
        interface of scikit-learn. `b` may be None if `a` has two or more.
    X : array-like or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,), default=None
        Rows of one group are tested together, and flip together in the permutation test.
    cv : int, splitter, list of splits, or None, default=None
        Number of folds, shuffled by `random_state` and stratified for classifiers; None takes 10
        up to 500 rows and 5 above. A splitter is used as it is; its test sets may overlap.
    repeats : int, default=None
        How often to repeat the cross-validation with new folds. None: 10, or 1 for a splitter.
    scoring : str, callable or None, default=None
        A scikit-learn scorer. None: accuracy, or R² of all held-out rows.
    level : float, default=0.95
        Level of the intervals.
    n_permutations : int, default=9999
        Number of sign flips for each pair; all of them if there are fewer. 0 for none.
    random_state : int, default=0
        Seed for folds and sign flips.

    Returns
    -------
    ModelComparison

    Notes
    -----
    The two p-values answer two questions. The corrected t test asks whether the *learning
    procedures* differ, on training sets like these; it is approximate. Sign flips ask whether the
    *models fitted here* differ, on rows like these. They are available for None, "accuracy",
    "neg_mean_squared_error" and "neg_mean_absolute_error".

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
    linear - rbf: +0.018 [-0.006, +0.042], p = 0.1457
    """
    models = _named(a, b)
    _check(models, level, n_permutations, repeats)
    data = {name: AssessedRows.of(model, X, y, groups) for name, model in models.items()}
    first = next(iter(data.values()))
    splits, said = _splits(cv, first, repeats, random_state)
    with caught_warnings() as caught:
        held = {}
        for number, (name, model) in enumerate(models.items()):
            say(number, len(models), "models compared")
            held[name] = _held(model, data[name], splits, scoring)
        say(len(models), len(models), "models compared")
    refitted = tuple(n for n, m in models.items() if choose_route(m, X, None).name == "refit")
    _check_scores(held)
    _tell(refitted, caught)
    share, score = _test_share(splits), _name_of(scoring, first)
    tests = [test for _, test in splits]
    units = _units(first, held, n_permutations)

    def difference(one: str, other: str) -> Difference:
        found = paired_t(held[one].splits, held[other].splits, share, level)
        rng = np.random.default_rng(random_state)
        p = np.nan
        if units:
            parts = _contributions(held[one], held[other], tests, first)
            p = flipped_pvalue(parts, n_permutations, rng)
        return Difference(one, other, *found, p)

    return ModelComparison(
        score_name=score,
        scores={name: _estimate(one, share, level, score) for name, one in held.items()},
        differences=tuple(difference(*pair) for pair in combinations(models, 2)),
        split_scores={name: one.splits for name, one in held.items()},
        n_samples=len(first.y),
        n_splits=len(splits),
        test_share=share,
        units=units,
        n_permutations=n_permutations if units else 0,
        refitted=refitted,
        level=level,
        cv=said,
    )


def flipped_pvalue(parts: np.ndarray, n_flips: int, rng: np.random.Generator) -> float:
    """Two-sided p-value of Σ c_i under sign flips of c: all of them, if there are at most
    `n_flips`.
    """
    parts = parts[parts != 0]
    if not len(parts):
        return 1.0
    parts = parts / np.sum(np.abs(parts))  # ties are judged in these units
    m = len(parts)
    if m < 60 and 2**m <= n_flips + 1:
        signs = 1.0 - 2.0 * ((np.arange(1, 2**m)[:, None] >> np.arange(m)) & 1)
        null = signs @ parts
    else:
        step = max(1, BLOCK_ELEMENTS // m)
        sizes = [min(step, n_flips - start) for start in range(0, n_flips, step)]
        null = np.concatenate([(2.0 * rng.integers(2, size=(k, m)) - 1.0) @ parts for k in sizes])
    reached = reaches(np.abs(null), abs(float(np.sum(parts))))
    return float((1 + np.sum(reached)) / (1 + len(null)))


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


def _check(models: Mapping[str, Any], level: Any, n_permutations: Any, repeats: Any) -> None:
    for name, model in models.items():
        if not hasattr(model, "fit"):
            raise TypeError(f"{name!r} must be an estimator with a method fit, got {model!r}.")
    if len({bool(is_classifier(model)) for model in models.values()}) > 1:
        raise ValueError(
            "models must be all classifiers or all regressors, got both: their scores cannot be "
            "compared."
        )
    for name, value, fine, wanted in (
        ("level", level, 0 < level < 1, "between 0 and 1"),
        ("n_permutations", n_permutations, n_permutations >= 0, "a non-negative integer"),
        ("repeats", repeats, repeats is None or repeats >= 1, "None or a positive integer"),
    ):
        if not fine:
            raise ValueError(f"{name} must be {wanted}, got {value!r} instead.")


def _splits(
    cv: Any, data: AssessedRows, repeats: int | None, random_state: int
) -> tuple[Splits, str]:
    """The splits of all repeats, and their description."""
    own = cv is None or isinstance(cv, (int, np.integer))
    repeats = (REPEATS if own else 1) if repeats is None else repeats
    rows, found = np.arange(len(data.y)), []
    for splitter in splitters(cv, data, repeats, random_state):
        pairs = (
            splitter.split(rows[:, None], data.y, groups=data.groups)
            if hasattr(splitter, "split")
            else splitter
        )
        found += [(rows[train], rows[test]) for train, test in pairs]
    if len(found) < 2:
        raise ValueError(
            f"a comparison needs at least two splits, got {len(found)}: the uncertainty of a "
            "difference is estimated from the variation between splits."
        )
    n_folds = len(found) // repeats
    return found, f"{n_folds} folds, {repeats} times" if own else f"{len(found)} splits"


def _test_share(splits: Splits) -> float:
    """Mean ratio of test rows to training rows of a split."""
    n_train, n_test = np.sum([(len(train), len(test)) for train, test in splits], axis=0)
    return float(n_test / n_train)


def _name_of(scoring: Any, data: AssessedRows) -> str:
    if scoring is None:
        return data.score_name
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")


def _held(model: Any, data: AssessedRows, splits: Splits, scoring: Any) -> Held:
    """Scores of all splits, from held-out predictions if these are sufficient."""
    score = _row_score(scoring, data)
    given: dict[str, Any] = {"cv": splits, "params": data.params}
    if score is None:
        found = cross_validate(model, data.X, data.y, scoring=scoring, error_score="raise", **given)
        return Held(np.asarray(found["test_score"], dtype=np.float64), None)
    pairs = cross_val_predict(model, data.X, data.y, by_fold=True, **given)
    rows = [score(data.y[test], on_host(said).reshape(-1)) for test, said in pairs]
    return Held(np.array([np.mean(values) for values in rows]), rows)


def _row_score(
    scoring: Any, data: AssessedRows
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """The score of a row, if the score is a mean over rows."""
    if scoring is None and data.classes is None:
        variance = float(np.var(data.y))
        if variance == 0.0:
            raise ValueError("the target must vary, got one value in all rows: R² is not defined.")
        return lambda y, said: 1.0 - (y - said) ** 2 / variance
    name = "accuracy" if scoring is None else scoring
    return ROW_SCORES.get(name) if isinstance(name, str) else None


def _check_scores(held: Mapping[str, Held]) -> None:
    for name, one in held.items():
        undefined = int(np.sum(~np.isfinite(one.splits)))
        if undefined:
            raise ValueError(
                f"{name!r} has no score on {undefined} of {len(one.splits)} splits, so differences "
                "cannot be paired. Use fewer folds, or a score that is defined for every test set."
            )


def _tell(refitted: Sequence[str], caught: Iterable[warnings.WarningMessage]) -> None:
    """Issue the warnings of all fits, each kind once; one about refitting for all models."""
    depth = depth_inside_package()
    for text, category in warned(w for w in caught if not issubclass(w.category, RefitWarning)):
        warnings.warn(text, category, stacklevel=depth)
    if refitted:
        warnings.warn(
            f"fitonce has no closed form for {joined(refitted)}: refitting on every training set, "
            "as scikit-learn does.",
            RefitWarning,
            stacklevel=depth,
        )


def _units(data: AssessedRows, held: Mapping[str, Held], n_permutations: int) -> str:
    if n_permutations == 0 or any(one.rows is None for one in held.values()):
        return ""
    return "rows" if data.groups is None else "groups"


def _contributions(
    one: Held, other: Held, tests: list[np.ndarray], data: AssessedRows
) -> np.ndarray:
    """The contribution of every row, or group, to the mean difference."""
    assert one.rows is not None and other.rows is not None
    c = np.zeros(len(data.y))
    for test, first, second in zip(tests, one.rows, other.rows, strict=True):
        c[test] += (first - second) / (len(tests) * len(test))
    if data.groups is None:
        return c
    return np.bincount(np.unique(data.groups, return_inverse=True)[1].reshape(-1), weights=c)


def _estimate(held: Held, share: float, level: float, name: str) -> Estimate:
    low, high = corrected_t(held.splits, share, level)
    if name == "accuracy":
        low, high = max(low, 0.0), min(high, 1.0)
    method = f"corrected resampled t over {len(held.splits)} splits"
    return Estimate(float(np.mean(held.splits)), low, high, level, method)
