"""Which plots a page has, with their captions and their words for those who cannot see them.

Displays drawn by matplotlib, inlined as SVG that follows the page's colours and fonts.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..assessment.data import n_columns
from ..assessment.words import score_name, shortened
from ..estimators.fitted import learns_metric, metric_of
from ..plotting import (
    CalibrationDisplay,
    CriterionMapDisplay,
    InfluenceDisplay,
    IntervalDisplay,
    MetricDisplay,
    PermutationNullDisplay,
    ProjectionDisplay,
    RegularizationPathDisplay,
    StandardizedResidualDisplay,
    WeightsDisplay,
)
from ..plotting.style import COLORS, QUIET, axes_of, plain, pyplot, rounded
from ..uncertainty.order import upper
from .subject import Subject, chosen_values, dense, model_feature_names, own_splits

# matplotlib writes colours as style properties, where CSS variables are allowed: so one drawing
# serves light, dark and print
FOLLOWING = {
    "#000000": "var(--ink)",
    "#222222": "var(--ink)",
    "#8a8a8a": "var(--soft)",
    "#dddddd": "var(--line)",
    "#ffffff": "var(--paper)",
    **{colour.lower(): f"var(--c{index})" for index, colour in enumerate(COLORS)},
}
SHARE = 0.9  # of rows inside the interval that a caption tells
MOST_MARKS = 2000  # of a scatter plot drawn one by one; more become a picture, which is smaller
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 13,
    "text.color": "#000000",
    "axes.edgecolor": "#8a8a8a",
    "savefig.transparent": True,
    "figure.dpi": 72,
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Figure:
    """An inline drawing with what it says in words."""

    name: str
    svg: str
    alt: str
    caption: str


def performance_figures(subject: Subject, include_data: bool) -> list[Figure]:
    """How well it does."""
    single = subject.y.ndim == 1 and subject.predicted_rows.sum() > 1
    fit = _fit(subject) if include_data and single and not subject.classification else None
    calibration = _calibration(subject) if subject.classification else None
    spread = _spread(subject) if include_data and single else None
    band = _band(subject) if include_data and single else None
    every = calibration, fit, band, spread, _null(subject)
    return [found for found in every if found is not None]


def choice_figures(subject: Subject, include_data: bool) -> list[Figure]:
    """What the model sees, and why these settings."""
    rows = include_data and subject.n_samples > 2 and subject.y.ndim == 1
    every = [
        _projection(subject, include_data) if subject.classification else None,
        _search(subject),
        _influence(subject) if rows and np.isfinite(subject.leverage).all() else None,
        _weights(subject) if hasattr(subject.model, "coef_") else None,
        _metric(subject) if metric_of(subject.model) is not None else None,
    ]
    return [found for found in every if found is not None]


def _fit(subject: Subject) -> Figure:
    rows = subject.predicted_rows
    observed, predicted = (v[rows].astype(float) for v in (subject.y, subject.predictions))
    radius = float(upper(np.abs(observed - predicted)[None, :], _alike(len(observed)), SHARE)[0])
    nine = f" About nine of ten new rows lie within {rounded(radius)} of their prediction."
    return figure(
        "fit",
        lambda: FitDisplay(observed, predicted, radius),
        "Scatter plot of held-out predictions against observed values, with a band around equality "
        "that holds nine of ten rows.",
        "Held-out predictions against observed values. The closer to the dashed line, the better."
        + (nine + " That is the band." if np.isfinite(radius) else ""),
    )


def _band(subject: Subject) -> Figure | None:
    """Prediction intervals over the one feature of a model of numbers."""
    model, X = subject.model, subject.model_features
    one = not subject.precomputed and n_columns(X) == 1 and not hasattr(X, "tocsr")
    if subject.classification or subject.record is None or not one or subject.in_pipeline:
        return None
    rows = dense(X)
    try:
        display = partial(IntervalDisplay.from_estimator, model, rows, subject.y, confidence=SHARE)
        return figure(
            "band",
            display,
            "Prediction intervals of new rows as a band over the feature, with the training rows.",
            "Prediction intervals of new rows (jackknife+, nine of ten), and the training rows.",
        )
    except ValueError:  # landmarks chosen anew by every training set
        return None


def _spread(subject: Subject) -> Figure | None:
    """Of exact models of numbers that have their decomposition at hand."""
    model = subject.model
    exact = model.penalty_ == "function" and not hasattr(model, "landmarks_")
    if subject.classification or subject.record is None or not exact:
        return None
    return figure(
        "spread",
        lambda: StandardizedResidualDisplay.from_estimator(model),
        "Leave-one-out residuals in units of their standard deviation against a normal law.",
        "Leave-one-out residuals in units of the standard deviation that the model, read as a "
        "Gaussian process, gives them. On the line it is right; steeper, it is too small.",
    )


def _alike(n: int) -> np.ndarray:
    """The share of every row in an order statistic."""
    return np.full(n, 1.0 / (n + 1))


def _null(subject: Subject) -> Figure | None:
    assessment = subject.assessment
    if assessment is None or assessment.permutation is None:
        return None
    test, name = assessment.permutation, shortened(assessment.permutation_statistic, 300)
    low, high = np.nanmin(test.permutation_scores), np.nanmax(test.permutation_scores)
    scored = f"{score_name(next(iter(test.scores)))} under test"
    return figure(
        "null",
        lambda: PermutationNullDisplay.from_predictions(test, name=scored),
        f"Histogram of scores under permuted labels, from {low:.3g} to {high:.3g}; the observed "
        f"score is {float(test.score):.3g}, p = {rounded(float(test.pvalue))}.",
        f"Scores with permuted labels ({test.n_permutations_done:,} permutations) and the observed "
        "one. p is the share that does at least as well, the observed one counted in. "
        f"Tested was the {name}.",
    )


def _calibration(subject: Subject) -> Figure | None:
    """Held-out probabilities against what happened: nested ones where there are some."""
    assessment, model = subject.assessment, subject.model
    bins = int(min(10, max(2, subject.n_samples // 30)))
    source, said = own_splits(subject), ""
    if assessment is not None and assessment.calibration is not None:
        said = f" On average the two differ by {assessment.calibration.error:.3f}."
    if assessment is not None and assessment.probabilities is not None:
        rows, source = assessment.tested, "nested cross-validation"
        given = subject.y[rows], assessment.probabilities[rows]
        draw = partial(CalibrationDisplay.from_predictions, *given, classes=subject.classes)
    elif hasattr(model, "temperature_") and model.calibration in ("temperature", None):
        draw = partial(CalibrationDisplay.from_estimator, model, subject.y)
    else:
        return None
    return figure(
        "calibration",
        lambda: draw(n_bins=bins),
        f"Calibration curve: observed share against predicted probability.{said}",
        f"How often it happened against the predicted probability ({source}); bars are 95 % "
        f"intervals.{said}",
    )


def _search(subject: Subject) -> Figure | None:
    """The criterion over what was tried."""
    model = subject.model
    chosen = " and ".join(value.replace(" =", "") for value in chosen_values(model))
    tried = [entry.get("gamma") for entry in model.cv_results_["params"]]
    gammas = {gamma for gamma in tried if gamma is not None and np.ndim(gamma) == 0}
    if len(gammas) > 1 and np.ndim(getattr(model, "gamma_", [])) == 0:
        return figure(
            "criterion",
            lambda: CriterionMapDisplay.from_estimator(model),
            "Map of the criterion over kernel width and regularisation; the choice, "
            f"{chosen}, is marked.",
            "The criterion of held-out predictions over everything that was tried; dark is "
            "better, the cross is the choice.",
        )
    if len(tried) == 1:
        return None
    return figure(
        "path",
        lambda: RegularizationPathDisplay.from_estimator(model),
        f"The criterion along alpha; the choice, {chosen}, is marked.",
        "The criterion of held-out predictions along the regularisation; the ring is the choice.",
    )


def _influence(subject: Subject) -> Figure:
    margins = subject.classification
    return figure(
        "influence",
        lambda: InfluenceDisplay.from_estimator(
            subject.model, subject.y, row_names=subject.row_names
        ),
        "Scatter plot of each row's leverage against its held-out margin or residual; the most "
        "influential rows are named.",
        "How well each row is predicted unseen, against how much the model leans on it. Leverage "
        "is the share of its own fitted value that a row supplies"
        + ("; margin is the decision for its own class less the best other." if margins else "."),
    )


def _weights(subject: Subject) -> Figure:
    return figure(
        "weights",
        lambda: WeightsDisplay.from_estimator(
            subject.model,
            subject.model_features,
            feature_names=model_feature_names(subject),
            n_features=15,
        ),
        "Bars of the largest weights and activation patterns of the linear kernel, by feature.",
        "What multiplies each feature, and how each feature varies with the output (Haufe et al. "
        "2014): only the latter may be read as what the feature has to do with the target.",
    )


def _metric(subject: Subject) -> Figure:
    return figure(
        "metric",
        lambda: MetricDisplay.from_estimator(
            subject.model, feature_names=model_feature_names(subject), n_features=15
        ),
        "Bars of the share of each feature in the metric of the kernel, largest first.",
        "Which features the model looks at: the share of each in the metric in which distances are "
        "taken. A small share says that the model does not need a feature, not that it has nothing "
        "to do with the target.",
    )


def _projection(subject: Subject, include_data: bool) -> Figure | None:
    """Histograms of two classes; of more a scatter, which shows single rows and goes only where
    data may go.
    """
    if len(subject.classes) == 2:
        return _histograms(subject) if np.isfinite(subject.held_out).any() else None
    if not include_data or not hasattr(subject.model, "scalings_") or subject.record is None:
        return None
    if learns_metric(subject.model):  # its axes have seen every row
        return None
    present = np.unique(subject.codes[subject.active])
    names = [subject.class_names[code] for code in present]
    return figure(
        "projection",
        lambda: ProjectionDisplay.from_estimator(subject.model, y=subject.y, class_names=names),
        "Scatter plot of held-out rows on the first two discriminant axes, in "
        f"{len(subject.classes)} classes.",
        "Held-out rows on the discriminant axes of the whole fit, in units of the within-class "
        "standard deviation.",
    )


def _histograms(subject: Subject) -> Figure:
    names = subject.class_names
    return figure(
        "projection",
        lambda: ProjectionDisplay(
            values=subject.held_out,
            y=subject.y,
            name="decision value, held out",
            threshold=0.0,
            class_names=names,
        ).plot(),
        f"Histograms of held-out decision values of {names[0]} and {names[1]}; the threshold is "
        "at zero.",
        f"Decision values by observed class ({own_splits(subject)}). Rows on the wrong side of the "
        "threshold are misclassified.",
    )


# ---- drawing -------------------------------------------------------------------------------------


def figure(name: str, draw: Callable[[], Any], alt: str, caption: str) -> Figure:
    """Call a function that returns a display, and take its figure as SVG."""
    plt = pyplot()
    with plt.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # text stays text: the reader's fonts draw it
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        display = draw()
        for axes in display.figure_.axes:
            for collection in axes.collections:
                collection.set_rasterized(len(collection.get_offsets()) > MOST_MARKS)
        buffer = io.StringIO()
        display.figure_.savefig(
            buffer, format="svg", dpi=144, metadata={"Date": None, "Creator": None}
        )
        plt.close(display.figure_)
    return Figure(name, _inline(buffer.getvalue(), name), alt, caption)


def _inline(svg: str, name: str) -> str:
    """The svg element alone.

    Ids made unique on the page, colours that follow it, a size that fits its container.
    """
    svg = svg[svg.index("<svg") :]
    colours = [(rf"(fill|stroke): {old}", rf"\g<1>: {new}") for old, new in FOLLOWING.items()]
    for pattern, replacement in (
        (r"(?s)<metadata>.*?</metadata>", ""),
        (r'\bid="', f'id="{name}-'),
        (r'(href="|url\()#', rf"\g<1>#{name}-"),
        *colours,
        (r"font: ([^;\"']*?)'[^\"]*?sans-serif", r"font: \g<1>sans-serif"),
        (r'\A(<svg [^>]*?) height="[\d.]+pt"', r"\g<1>"),
        (r'\A(<svg [^>]*?)width="[\d.]+pt" ', r'\g<1>aria-hidden="true" '),
    ):
        svg = re.sub(pattern, replacement, svg)
    return re.sub(r'\b(d|x|y|transform)="[^"]*"', _shorter, svg)


def _shorter(attribute: re.Match[str]) -> str:
    """Coordinates to hundredths of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\g<1>", attribute[0])


class FitDisplay:
    """Held-out predictions of a regression against what was observed."""

    def __init__(self, observed: np.ndarray, predicted: np.ndarray, radius: float) -> None:
        self.figure_, ax = axes_of(None, (5.2, 4.2))
        plain(ax)
        low, high = np.nanmin([observed, predicted]), np.nanmax([observed, predicted])
        line = np.array([low, high])
        ax.plot(line, line, color=QUIET, linestyle="--", linewidth=1.0)
        if np.isfinite(radius):
            ax.fill_between(line, line - radius, line + radius, color=COLORS[0], alpha=0.15, lw=0)
        ax.scatter(
            observed,
            predicted,
            s=16,
            color=COLORS[0],
            edgecolors="#ffffff",
            linewidths=0.4,
            alpha=0.85,
        )
        ax.set_xlabel("observed")
        ax.set_ylabel("predicted, held out")
