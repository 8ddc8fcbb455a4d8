"""Everything a page says in sentences.

Summary, doubts, settings, a paragraph for a methods section.
"""

from __future__ import annotations

import datetime
import importlib
import platform
from typing import Any

import numpy as np

from ..plotting.style import rounded
from .explorer import Explorer
from .subject import Subject, shortened

CRITERIA = {
    "brier": "Brier loss",
    "log_loss": "log loss",
    "auc": "area under the ROC curve",
    "r2": "R²",
    "error": "error rate",
}
NAMES = {
    "KernelFisherDiscriminant": "kernel Fisher discriminant",
    "LeastSquaresSVC": "least-squares support vector machine",
    "KernelRidge": "kernel ridge regression",
}
# replaced by the size of the page; a noncharacter, which names cannot contain
SIZE = "\ufdd0size\ufdd0"


def model_name(subject: Subject) -> str:
    return NAMES.get(type(subject.model).__name__, type(subject.model).__name__)


def default_title(subject: Subject) -> str:
    name = model_name(subject)
    return f"{name[0].upper()}{name[1:]} on {subject.n_samples:,} rows"


def subtitle(subject: Subject) -> str:
    what = f"{len(subject.classes)} classes" if subject.classification else "regression"
    columns = (
        "a precomputed kernel"
        if subject.precomputed
        else f"{subject.n_features:,} feature{'s' * (subject.n_features != 1)}"
    )
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"{model_name(subject)} · {subject.n_samples:,} rows · {columns} · {what} · {today}"


def criterion_name(model: Any) -> str:
    if not isinstance(model.criterion, str):
        return "user-defined criterion"
    return CRITERIA.get(model.criterion, model.criterion.replace("_", " "))


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "–"


def _score(subject: Subject, value: float) -> str:
    return percent(value) if subject.classification else f"{value:.3f}"


def own_splits(subject: Subject) -> str:
    """How the model's own held-out values were made."""
    kept = getattr(subject.model, "_kept", None)
    leave_one_out = kept.folds is None if kept is not None else subject.model.cv is None
    return "leave-one-out" if leave_one_out else "cross-validation by the model's own splits"


def own_score(subject: Subject) -> float:
    """Accuracy or R² of the held-out values of the chosen settings."""
    tested = subject.tested
    if not tested.any():
        return float("nan")
    if subject.classification:
        from ..estimators.classifier import labels_of

        return float(
            np.mean(labels_of(subject.held_out, subject.classes)[tested] == subject.y[tested])
        )
    observed, predicted = subject.y[tested].astype(float), subject.held_out[tested]
    total = np.sum((observed - observed.mean(axis=0)) ** 2)
    return float(1.0 - np.sum((observed - predicted) ** 2) / total) if total > 0 else float("nan")


def cards(subject: Subject) -> list[dict[str, str]]:
    """The figures at the top."""
    own = own_score(subject)
    name = "accuracy" if subject.classification else "R²"
    found = []
    assessment = subject.assessment
    if assessment is not None:
        score, baseline = assessment.score, assessment.baseline
        interval = (
            f"{percent_level(score.level)} interval {_score(subject, score.low)} to "
            f"{_score(subject, score.high)}"
        )
        note = interval if np.isfinite(score.low) else "no interval"
        found.append(
            {
                "label": f"nested {name}",
                "value": _score(subject, score.value),
                "note": f"{note} ({score.method})",
            }
        )
        what = "always the most frequent class" if subject.classification else "always the mean"
        found.append(
            {
                "label": "without the features",
                "value": _score(subject, baseline.value),
                "note": f"{what}, same folds",
            }
        )
        test = assessment.permutation
        if test is not None:
            found.append(
                {
                    "label": "p-value, permutation test",
                    "value": rounded(float(test.pvalue)),
                    "note": f"{test.n_permutations_done:,} relabellings"
                    + (", all there are" if test.exact else ""),
                }
            )
    found.append(
        {
            "label": f"{own_splits(subject).split(' by')[0]} {name}",
            "value": _score(subject, own),
            "note": "of the chosen settings"
            + (", which were chosen by it" if tuned(subject) else ""),
        }
    )
    if subject.classification:
        sizes = np.bincount(subject.codes, minlength=len(subject.classes))
        note = (
            f"{sizes.min():,} to {sizes.max():,} rows a class"
            if len(sizes) > 2
            else f"{sizes[0]:,} and {sizes[1]:,} rows"
        )
        found.append({"label": "classes", "value": f"{len(sizes)}", "note": note})
    return found


def percent_level(level: float) -> str:
    return f"{100 * level:g} %"


def tuned(subject: Subject) -> bool:
    return len(subject.model.cv_results_["params"]) > 1


def summary(subject: Subject) -> list[str]:
    """What was asked and what came out, in sentences."""
    assessment = subject.assessment
    if subject.classification:
        names = subject.class_names
        among = f"{names[0]} or {names[1]}" if len(names) == 2 else f"one of {len(names)} classes"
        asked = f"The question was whether a row is {among}, told from {_inputs(subject)}."
    else:
        asked = f"The question was how large the target of a row is, told from {_inputs(subject)}."
    if assessment is None:
        share = own_score(subject)
        if subject.classification:
            found = (
                f"Left out and predicted by a model that had not seen them, {percent(share)} of "
                f"{int(subject.tested.sum()):,} rows were "
                f"classified correctly ({own_splits(subject)})."
            )
        else:
            found = (
                f"Predictions of rows that the model had not seen explain R² = {share:.3f} of the "
                f"variance ({own_splits(subject)})."
            )
        honest = (
            "The settings were chosen by these same predictions, so that the figure is somewhat "
            "optimistic. Pass the result of "
            "fitonce.assess to have nested scores with intervals here."
            if tuned(subject)
            else "The settings were given, not tuned on these rows."
        )
        return [f"{asked} {found}", honest]
    score, baseline = assessment.score, assessment.baseline
    name = "accuracy" if subject.classification else "R²"
    level = percent_level(score.level)
    interval = (
        f" ({level} interval {_score(subject, score.low)} to {_score(subject, score.high)})"
        if np.isfinite(score.low)
        else ""
    )
    found = (
        f"In nested cross-validation the model reaches an {name} of "
        f"{_score(subject, score.value)}{interval}"
    )
    found += f"; a model that ignores the features reaches {_score(subject, baseline.value)}."
    sentences = [f"{asked} {found}"]
    test = assessment.permutation
    if test is not None:
        count = (
            f"{test.n_permutations_done:,} random relabellings"
            if not test.exact
            else f"all {test.n_permutations_done:,} relabellings"
        )
        sentences.append(
            "If features and target had nothing to do with each other, a score as good as the "
            "observed one would come up with probability "
            f"p = {rounded(float(test.pvalue))} ({count})."
        )
    wrong = int(subject.wrong.sum())
    if subject.classification:
        tested = int(subject.predicted_rows.sum())
        sentences.append(f"{wrong:,} of {tested:,} held-out rows were predicted wrongly.")
    return sentences


def _inputs(subject: Subject) -> str:
    return (
        "a kernel matrix"
        if subject.precomputed
        else f"{subject.n_features:,} feature{'s' * (subject.n_features != 1)}"
    )


def doubts(subject: Subject) -> list[str]:
    """What a reader must know before believing the figures."""
    found = list(subject.assessment.warnings) if subject.assessment is not None else []
    if subject.classification:
        sizes = np.bincount(subject.codes, minlength=len(subject.classes))
        if sizes.min() < 5:
            few = [name for name, size in zip(subject.class_names, sizes, strict=True) if size < 5]
            found.append(
                f"Fewer than five rows of {_listed(few)}: nothing certain can be said of so few."
            )
    if subject.n_samples < 20:
        found.append(
            f"There are only {subject.n_samples} rows: every figure on this page is uncertain."
        )
    return found


def _listed(names: list[str], limit: int = 6) -> str:
    shown = names[:limit]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def performance_text(subject: Subject) -> str:
    assessment = subject.assessment
    if assessment is None:
        unseen = (
            " Preprocessing steps of the pipeline have seen all rows."
            if subject.model is not subject.estimator
            else ""
        )
        return (
            "Every row was predicted by a model that was fitted without it "
            f"({own_splits(subject)}, exactly what refitting gives)."
            f"{unseen} There is no nested cross-validation and no permutation test on this page: "
            "pass an assessment for them."
        )
    repeats = "" if assessment.repeats == 1 else f", {assessment.repeats} times"
    return (
        f"Nested cross-validation, {assessment.cv}{repeats}: preprocessing and tuning were done "
        "anew on every training set, so that no "
        "scored row had a say in the model that predicted it. The interval is by "
        f"{assessment.score.method}."
    )


def choice_text(subject: Subject) -> str:
    model = subject.model
    count = len(model.cv_results_["params"])
    kernel = model.kernel if isinstance(model.kernel, str) else "user-defined"
    values = [f"alpha = {rounded(float(model.alpha_))}"]
    gamma = getattr(model, "gamma_", None)
    if gamma is not None:
        values.insert(
            0,
            f"gamma = {rounded(float(gamma))}" if np.ndim(gamma) == 0 else "one gamma per feature",
        )
    if count == 1:
        return f"The {kernel} kernel with {' and '.join(values)} was given, not tuned."
    return (
        f"The {kernel} kernel with {' and '.join(values)} was the best of {count:,} candidates by "
        f"the {criterion_name(model)} of "
        f"held-out predictions ({own_splits(subject)}). It uses {model.effective_dof_:.1f} "
        "effective degrees of freedom for "
        f"{subject.n_samples:,} rows."
    )


def settings(subject: Subject, version: str, explorer: Explorer | str) -> list[tuple[str, str]]:
    """Everything needed to do it again."""
    model = subject.model
    found = [("model", type(model).__name__)]
    if subject.model is not subject.estimator:
        found.append(
            ("pipeline", " → ".join(type(step).__name__ for _, step in subject.estimator.steps))
        )
    given = {
        name: value
        for name, value in sorted(model.get_params(deep=False).items())
        if value is not None
    }
    found.append(
        ("parameters", ", ".join(f"{name}={_value(value)}" for name, value in given.items()))
    )
    fitted = [
        f"{name} = {_value(getattr(model, name))}"
        for name in ("gamma_", "alpha_", "penalty_", "degree_", "coef0_")
        if hasattr(model, name)
    ]
    found.append(("chosen", ", ".join(fitted)))
    found.append(("effective degrees of freedom", f"{model.effective_dof_:.2f}"))
    if hasattr(model, "temperature_"):
        found.append(("temperature of the probabilities", rounded(float(model.temperature_))))
    found.append(("candidates tried", f"{len(model.cv_results_['params']):,}"))
    assessment = subject.assessment
    if assessment is not None:
        found.append(
            (
                "outer splits",
                f"{assessment.cv}; {assessment.repeats} × {assessment.n_splits}, random state "
                f"{assessment.random_state}",
            )
        )
        found.append(("route", str(assessment.route)))
        if assessment.permutation is not None:
            test = assessment.permutation
            scored = f"{assessment.permutation_statistic}, {assessment.permutation_rows:,} rows"
            found.append(
                (
                    "permutation test",
                    f"{test.n_permutations_done:,} relabellings, mode {test.mode}, exchange "
                    f"{test.exchange}; {scored}",
                )
            )
    if isinstance(explorer, str):
        found.append(("explorer", explorer))
    else:
        ranks = ", ".join(f"{width.V.shape[1]:,}" for width in explorer.widths)
        found.append(
            (
                "explorer",
                f"{len(explorer.widths)} kernel widths, {len(explorer.alphas)} values of alpha, "
                f"{ranks} directions",
            )
        )
    modules = {
        name: importlib.import_module(name).__version__ for name in ("numpy", "scipy", "sklearn")
    }
    versions = [
        f"fitonce {version}",
        *(f"{name} {number}" for name, number in modules.items()),
        f"Python {platform.python_version()}",
    ]
    found.append(("versions", ", ".join(versions)))
    return found


def _value(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if isinstance(value, np.ndarray):
        return f"[{', '.join(f'{v:.4g}' for v in value.reshape(-1)[:6])}{', …' if value.size > 6 else ''}]"
    return shortened(value if isinstance(value, str) else repr(value), 120)


def methods_text(subject: Subject, version: str, verification: Any) -> str:
    model, assessment = subject.model, subject.assessment
    kernel = model.kernel if isinstance(model.kernel, str) else "user-defined"
    gamma = getattr(model, "gamma_", None)
    width = (
        ""
        if gamma is None
        else f", gamma = {rounded(float(gamma))}"
        if np.ndim(gamma) == 0
        else ", one gamma per feature"
    )
    steps = ""
    if subject.model is not subject.estimator:
        names = [type(step).__name__ for _, step in subject.estimator.steps[:-1]]
        steps = f" after {' and '.join(names)}" if names else ""
    sentences = [
        f"We fitted a {model_name(subject)} ({kernel} kernel{width}, alpha = "
        f"{rounded(float(model.alpha_))}, penalty on the "
        f"{'dual coefficients' if model.penalty_ == 'dual' else 'function norm'}){steps} to "
        f"{subject.n_samples:,} rows"
        + ("" if subject.precomputed else f" and {subject.n_features:,} features")
        + f" with fitonce {version}."
    ]
    if tuned(subject):
        sentences.append(
            f"Its settings were chosen among {len(model.cv_results_['params']):,} candidates by "
            f"the {criterion_name(model)} of exact "
            f"held-out predictions ({own_splits(subject)})."
        )
    if assessment is not None:
        score = assessment.score
        name = "accuracy" if subject.classification else "R²"
        interval = (
            f" ({percent_level(score.level)} interval {_score(subject, score.low)} to "
            f"{_score(subject, score.high)}, {score.method})"
            if np.isfinite(score.low)
            else ""
        )
        sentences.append(
            f"Nested cross-validation ({assessment.cv}), with all preprocessing and tuning inside "
            f"the training sets, gave an {name} of "
            f"{_score(subject, score.value)}{interval}, against "
            f"{_score(subject, assessment.baseline.value)} without the features."
        )
        if assessment.permutation is not None:
            test = assessment.permutation
            sentences.append(
                f"A permutation test ({test.n_permutations_done:,} relabellings) gave p = "
                f"{rounded(float(test.pvalue))}."
            )
    if verification is not None:
        sentences.append(shortened(str(verification), 600))
    return " ".join(sentences)


def footer(version: str, include_data: bool, explorer: Explorer | str) -> str:
    data = (
        "It contains the training rows" if include_data else "It does not contain the training rows"
    )
    if include_data and not isinstance(explorer, Explorer):
        data = "Its table of rows and its plots show training rows"
    return (
        f"Written by fitonce {version}. This file is {SIZE}, needs no network and asks for "
        f"nothing. {data}."
    )
