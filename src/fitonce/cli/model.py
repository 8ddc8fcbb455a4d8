"""From a table and the settings of a command to an estimator.

The columns as numbers and the model form one pipeline, which is refitted in every fold. Numbers:
missing values become the median, with an indicator; then unit variance, and at most three standard
deviations from the mean (`ClippedScaler`). Categories: one 0/1 column for each level; those with
few rows are kept separate or merged, whichever gives the better held-out score on the training
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ..assessment import ModelComparison, compare
from ..assessment.render import score_name
from ..core.numerical_warnings import caught_warnings
from ..estimators import (
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    TunedPipeline,
)
from ..estimators.confounding import MEANINGS
from ..estimators.fitted import chooses_steps, chosen_steps, is_committee, is_model, takes_groups
from ..kernels import PARAMETERS
from ..preparation import ClippedScaler
from .columns import Design
from .values import Feature
from .words import counted, examples, listed, one_of, refuse, word_or_number

LANDMARKS_ABOVE = 2000  # rows; larger tables use landmarks unless the user decides otherwise
N_LANDMARKS = 300
MODELS: dict[str, dict[str, Any]] = {
    "classification": {"fisher": KernelFisherDiscriminant, "lssvm": LeastSquaresSVC},
    "regression": {"ridge": KernelRidge},
}
COMMITTEES: dict[str, Any] = {
    "classification": KernelCommitteeClassifier,
    "regression": KernelCommitteeRegressor,
}
TREES = 100  # of a random forest beside the model
LEFT_OUT = ("polynomial", "sigmoid", "precomputed")  # kernels not offered for tables
EFFORTS = ("fast", "default", "best")
KERNELS = ("auto", "tune", *(name for name in PARAMETERS if name not in LEFT_OUT))
SAMPLE_ABOVE, SAMPLE = 20_000, 10_000  # rows; of larger tables, a sample is assessed
MOST_ROWS = 10_000  # for the choice of a kernel: one half for training, the other for testing
MOST_NUMBERS = 100_000_000  # largest table from which a model without landmarks uses all rows
RARE = 10  # rows; categories with fewer are merged if that scores better: models.py encodings
# limits on the categories that are kept in one column: their number, and the size of their columns
MOST_LEVELS, FEWEST_LEVELS, MOST_ENTRIES = 1000, 20, 100_000_000
FAR = 6  # standard deviations; new numbers farther from the mean are told
MERGED = "columns__categories__min_frequency"  # the parameter that is chosen
# older versions of scikit-learn find columns by name only through a protocol that newer polars
# lacks
NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
FINDS_NAMES = NEW or hasattr(pl.DataFrame, "__dataframe__")


def pipeline(
    design: Design,
    *,
    effort: str = "default",
    model: str | None = None,
    kernel: str = "auto",
    gamma: str = "tune",
    alpha: str = "tune",
    priors: str | None = None,
    confounding: str = "remove",
    landmarks: str = "auto",
    random_state: int = 0,
) -> tuple[Any, list[str]]:
    """The estimator for a table, and remarks about it."""
    allowed, n = MODELS[design.task], len(design.y)
    one_of(effort, "effort", EFFORTS)
    if effort == "best":
        _check_alone(design, model=model, kernel=kernel, gamma=gamma, alpha=alpha, priors=priors)
        if n <= LANDMARKS_ABOVE:
            committee = COMMITTEES[design.task](cv=design.folds(None))
            return with_columns(design, committee), about_categories(design)
    name = model or next(iter(allowed))
    other = f"--model {name} cannot be used for {design.task}: use {' or '.join(allowed)}, or set "
    refuse((name not in allowed, f"{other}the kind of target with --task."))
    kernels = _kernels(kernel)
    tuned = effort == "default" and gamma == "tune" and n <= LANDMARKS_ABOVE
    chosen: dict[str, Any] = {
        "kernel": kernels if kernels != "auto" else "tune" if tuned else "rbf",
        "gamma": word_or_number(gamma, "gamma", ("tune", "scale")),
        "alpha": word_or_number(alpha, "alpha", ("tune",)),
        "confounding": one_of(confounding, "confounding", MEANINGS),
        "cv": design.folds(None),
    }
    if priors is not None:
        chosen |= {"criterion": "balanced_error", **_priors(priors, name, design)}
    count, notes = _landmarks(landmarks, kernels, n)
    if count is not None:
        chosen |= {"landmarks": count, "random_state": random_state}
    if effort == "best":
        notes.append(
            f"--effort best needs at most {LANDMARKS_ABOVE:,} rows: one model is used instead"
        )
    choose = effort != "fast"
    estimator = with_columns(design, allowed[name](**chosen), choose)
    return estimator, [*notes, *about_categories(design, choose)]


def reference(name: str, design: Design, seed: int, priors: str | None = None) -> Any:
    """A model to compare with, by name: a kernel, a random forest, or a baseline."""
    numbers = design.task == "regression"
    if name == "forest":
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        forest = RandomForestRegressor if numbers else RandomForestClassifier
        return with_columns(design, forest(TREES, n_jobs=-1, random_state=seed))
    if name == "baseline":
        return with_columns(design, DummyRegressor() if numbers else DummyClassifier())
    return pipeline(design, kernel=name, random_state=seed, priors=priors)[0]


def _check_alone(design: Design, **settings: str | None) -> None:
    """Refuse settings of a single model, since a committee chooses them itself."""
    usual = {"model": None, "kernel": "auto", "gamma": "tune", "alpha": "tune", "priors": None}
    given = [name for name, value in settings.items() if value != usual[name]]
    reason = (
        "--effort best tunes kernels, widths and regularization itself and cannot be combined "
        f"with {''.join(f'--{name}' for name in given[:1])}: leave out one of the two."
    )
    refuse((bool(given), reason))


def _priors(text: str, model: str, design: Design) -> dict[str, Any]:
    """The weights of the classes, in the order of the labels, as a parameter of the model."""
    names = np.unique(design.y).tolist() if design.task == "classification" else []
    if text == "equal" and model == "lssvm":
        return {"class_weight": "balanced"}
    unused = f"--priors {text} cannot be used with --model {model}: leave it out."
    refuse((model != "fisher", unused))
    parts = ["1"] * len(names) if text == "equal" else text.split(",")
    given = [word_or_number(part, "priors", ("equal",)) for part in parts]
    order = f"--priors must be equal, or {len(names)} numbers separated by commas, for "
    wrong = f"{order}{listed(names)} in this order, got {text!r} instead."
    refuse((len(given) != len(names) or "equal" in given, wrong))
    return {"priors": [float(value) / sum(given) for value in given]}


def _kernels(text: str) -> str | list[str]:
    """The kernel given by an option; a list if several are named."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        one_of(name, "kernel", KERNELS if len(names) == 1 else KERNELS[2:])
    return names[0] if len(names) == 1 else names


def _landmarks(text: str, kernel: Any, n_rows: int) -> tuple[int | None, list[str]]:
    """The number of landmarks, None to use every row.

    Tables with more than `LANDMARKS_ABOVE` rows get landmarks by default; a linear kernel needs
    none.
    """
    count = word_or_number(text, "landmarks", ("auto", "none"), above=1, kind=int)
    if count == "none" or (count == "auto" and (n_rows <= LANDMARKS_ABOVE or kernel == "linear")):
        return None, []
    if count != "auto":
        return min(count, n_rows), []
    return N_LANDMARKS, [
        f"more than {LANDMARKS_ABOVE:,} rows ({n_rows:,}): the model uses {N_LANDMARKS} landmarks "
        "(Nyström approximation); change this with --landmarks"
    ]


# ---- columns as numbers --------------------------------------------------------------------------


def with_columns(design: Design, model: Any, choose: bool = True) -> Pipeline:
    """A pipeline of the columns of a table as numbers, which is tuned if there is a choice, and a
    model.
    """
    steps = [("columns", _columns(design.features, len(design.y))), ("model", model)]
    judges = is_model(model) or is_committee(model)
    if choose and judges and any(rare > 1 for *_, rare, _ in _rare_levels(design)):
        return TunedPipeline(steps, [{MERGED: 1}, {MERGED: RARE}])
    return Pipeline(steps)


def _columns(features: Sequence[Feature], n_rows: int) -> Any:
    """Numbers imputed and scaled, categories in columns."""
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=1,
        max_categories=most_levels(n_rows),
        sparse_output=False,
    )
    scale = Pipeline([("impute", impute), ("scale", ClippedScaler())])
    called: dict[bool, list[Any]] = {False: [], True: []}
    for place, feature in enumerate(features):
        called[feature.is_category].append(feature.name if FINDS_NAMES else place)
    parts = [("numbers", scale, called[False]), ("categories", encode, called[True])]
    return ColumnTransformer([part for part in parts if part[-1]], sparse_threshold=0.0)


def about_new_rows(estimator: Any, X: pl.DataFrame) -> list[str]:
    """Remarks about categories that the training rows do not have, and about numbers far from
    theirs; none for pipelines that were not made here.
    """
    steps = getattr(estimator, "named_steps", {})
    learned = getattr(steps.get("columns"), "named_transformers_", {})
    notes, texts = [], [values for values in X if values.dtype == pl.String]
    if encoder := learned.get("categories"):
        known = zip(texts, encoder.categories_, encoder.infrequent_categories_, strict=True)
        for values, levels, rare in known:
            if (others := values.filter(~values.is_in(levels.tolist()))).len():
                counts = "as none of its values" if rare is None else "as one of its rare values"
                notes.append(
                    f"{others.len():,} values of {values.name!r} were not in the training table "
                    f"({examples(others)}): they count {counts}"
                )
    if scale := learned.get("numbers"):
        numbers = X.drop([values.name for values in texts])
        middle, spread = (v[: numbers.width] for v in (scale[-1].mean_, scale[-1].scale_))
        far = np.abs(numbers.to_numpy() - middle) > FAR * spread
        if far.any():
            where = listed([numbers.columns[place] for place in np.flatnonzero(far.any(axis=0))])
            notes.append(
                f"far outside the training rows: {int(far.any(axis=1).sum()):,} of "
                f"{counted(X.height)}, more than {FAR} standard deviations from the mean in "
                f"{where}; they are predicted like rows at the edge of the training rows"
            )
    return notes


def most_levels(n_rows: int) -> int:
    """The number of categories kept for one column, as memory allows; the merged ones count as
    one.
    """
    return max(FEWEST_LEVELS, min(MOST_LEVELS, MOST_ENTRIES // n_rows))


def about_categories(design: Design, choose: bool = True) -> list[str]:
    """Remarks about columns in which some categories are merged, or may be."""
    most, notes = most_levels(len(design.y)), []
    for name, counts, rare, rows in _rare_levels(design):
        if len(counts) > most:
            rest = counts[most - 1 :]
            notes.append(
                f"{name!r}: {len(counts):,} categories, of which the {len(rest):,} rarest "
                f"({counted(int(rest.sum()))}) are merged"
            )
        elif rare > 1 and choose:
            notes.append(
                f"{name!r}: {len(counts):,} categories, of which {rare:,} have fewer than {RARE} "
                f"rows ({counted(rows)} in all): kept separate or merged, by held-out score"
            )
    return notes


def chosen_categories(estimator: Any) -> list[str]:
    """A remark about what a fitted pipeline chose for rare categories, if it had a choice."""
    chosen = chosen_steps(estimator).get(MERGED)
    return [] if chosen is None else [f"categories: {described_choice(chosen)}, by held-out score"]


def described_choice(value: int) -> str:
    """A description of the chosen value of the parameter `MERGED`."""
    return "all kept separate" if value == 1 else f"those with fewer than {value} rows merged"


def _rare_levels(design: Design) -> Iterator[tuple[str, np.ndarray, int, int]]:
    """For each category: its name, the numbers of rows of its levels in descending order, the
    number of its rare levels, and their rows.
    """
    for feature in (feature for feature in design.features if feature.is_category):
        counts = np.sort(design.X[feature.name].value_counts()["count"].to_numpy())[::-1]
        rare = counts < RARE
        yield feature.name, counts, int(rare.sum()), int(counts[rare].sum())


# ---- fits ----------------------------------------------------------------------------------------


def fit(estimator: Any, design: Design) -> Any:
    """Fit a pipeline, passing on what belongs to the rows if its last step accepts it."""
    last = estimator[-1]
    adjusts = is_model(last) or is_committee(last)
    taken = {"groups": takes_groups(last), "confounds": adjusts, "sample_weight": True}
    given = {name: v for name, v in design.row_options.items() if taken[name] and v is not None}
    named = {f"model__{name}": v for name, v in given.items()}
    return estimator.fit(design.X, design.y, **named)


def assessed_rows(design: Design, seed: int) -> tuple[Design, list[str]]:
    """The rows on which a model is assessed: all of them, or a sample if there are very many."""
    if len(design.y) <= SAMPLE_ABOVE:
        return design, []
    return design.sample(SAMPLE, seed), [
        f"more than {SAMPLE_ABOVE:,} rows: scores and kernel width come from a random sample of "
        f"{SAMPLE:,}; the model is fitted on all rows"
    ]


def better_kernel(
    design: Design, assessed: Design, settings: dict[str, Any], seed: int
) -> tuple[str, str]:
    """The linear kernel, or rbf with landmarks, whichever predicts one half of a sample better from
    the other half; and a remark.

    If the model is assessed on a sample only, other rows are used.
    """
    free = np.flatnonzero(~np.isin(design.numbers, assessed.numbers))
    some = (design.rows(free) if len(free) else design).sample(MOST_ROWS, seed)
    kind = ShuffleSplit if some.groups is None else GroupShuffleSplit
    halves = kind(1, test_size=0.5, random_state=seed).split(some.X, some.y, some.groups)
    splits = [np.array_split(np.arange(len(some.y)), 2)] if some.forward else list(halves)
    models = {k: pipeline(design, **settings | {"kernel": k})[0] for k in ("linear", "rbf")}
    found = compared(models, some, cv=splits)
    said = ", ".join(f"{kernel} {score.value:.3f}" for kernel, score in found.scores.items())
    where = f"{len(splits[0][1]):,} rows not trained on ({said})"
    return found.best, f"kernel: {found.best}, by {score_name(found.score_name)} on {where}"


def compared(models: dict[str, Any], design: Design, **options: Any) -> ModelComparison:
    """Models on the same held-out rows; forests are refitted without a word."""
    with caught_warnings():
        options |= {"groups": design.groups, "sample_weight": design.weights}
        options["cv"] = design.folds(options.get("cv"))
        return compare(models, None, design.X, design.y, **options)


def fit_all(estimator: Any, design: Design, assessed: Design) -> Any:
    """Fit on all rows, with the kernel and encoding chosen on the assessed rows.

    Returns the model of the assessed rows, which is the same model if these are all rows.
    """
    shown = estimator
    if assessed is not design:
        shown = fit(clone(estimator), assessed)
        names = ("kernel", "gamma", "degree", "coef0")
        kernel = {n: getattr(shown[-1], f"{n}_") for n in names if hasattr(shown[-1], f"{n}_")}
        estimator.set_params(**{f"model__{name}": value for name, value in kernel.items()})
        if chooses_steps(shown):
            estimator.set_params(candidates=[shown.chosen_])
    most = MOST_NUMBERS // max(design.X.width, 1)
    landmarks = getattr(estimator[-1], "landmarks", None)
    fit(estimator, design if landmarks is not None else design.sample(most, 0))
    return shown
