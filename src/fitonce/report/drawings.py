"""The plots of a report, with captions and alternative texts.

The plots are drawn by matplotlib and embedded as SVG that follows the page's colors and fonts.
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

from ..assessment import ColumnImportance
from ..assessment.data import n_columns
from ..assessment.render import score_name, shortened
from ..plotting import (
    BarDisplay,
    CalibrationDisplay,
    CriterionMapDisplay,
    InfluenceDisplay,
    IntervalDisplay,
    PermutationNullDisplay,
    ProjectionDisplay,
    RegularizationPathDisplay,
)
from ..plotting.style import COLORS, QUIET, axes_of, plain, pyplot, rounded
from ..uncertainty.left_out import upper
from .subject import Subject, chosen_values, dense, model_feature_names, own_splits

# matplotlib writes colors as style properties, where CSS variables are allowed: one drawing works
# for light mode, dark mode and print
FOLLOWING = {
    "#000000": "var(--ink)",
    "#222222": "var(--ink)",
    "#8a8a8a": "var(--soft)",
    "#dddddd": "var(--line)",
    "#ffffff": "var(--paper)",
    **{colour.lower(): f"var(--c{index})" for index, colour in enumerate(COLORS)},
}
SHARE = 0.9  # coverage of the interval in a caption
TUNED_BAND = (  # benchmarks/simulations.py hard
    " The settings were tuned on the same rows, so fewer new rows are covered where there are few: "
    "86 % with 20 training rows, 87 to 89 % with 40 to 80."
)
# points drawn one by one in a scatter plot; more become an image, which is smaller
MOST_MARKS = 2000
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
    """An embedded drawing with a description in words."""

    name: str
    svg: str
    alt: str
    caption: str


def performance_figures(subject: Subject, include_data: bool) -> list[Figure]:
    """Plots of how well the model predicts."""
    single = subject.y.ndim == 1 and subject.predicted_rows.sum() > 1
    fit = _fit(subject) if include_data and single and not subject.classification else None
    calibration = _calibration(subject) if subject.classification else None
    band = _band(subject) if include_data and single else None
    every = calibration, fit, band, _null(subject)
    return [found for found in every if found is not None]


def choice_figures(subject: Subject, include_data: bool) -> list[Figure]:
    """Plots of what the model has learned and how the settings were chosen."""
    rows = include_data and subject.n_samples > 2 and subject.y.ndim == 1
    every = [
        _projection(subject, include_data) if subject.classification else None,
        _members(subject) if subject.committee else _search(subject),
        _influence(subject) if rows and np.isfinite(subject.leverage).all() else None,
        _weights(subject) if hasattr(subject.model, "coef_") else None,
    ]
    return [found for found in every if found is not None]


def columns_figure(found: ColumnImportance | None) -> Figure | None:
    """What prediction loses without each column."""
    if found is None:
        return None
    return figure(
        "columns",
        lambda: _short(BarDisplay.from_importance(found, n_shown=12)),
        "Bars of what held-out prediction loses without each column, with intervals.",
        f"What is lost without each column, with {100 * found.level:g} % intervals. Columns in "
        "color matter, corrected for their number.",
    )


def _short(display: BarDisplay) -> BarDisplay:
    """With a label that fits below narrow axes; the caption says the rest."""
    display.ax_.set_xlabel(display.name.partition(" without")[0])
    return display


def _fit(subject: Subject) -> Figure:
    rows = subject.predicted_rows
    observed, predicted = (v[rows].astype(float) for v in (subject.y, subject.predictions))
    radius = float(upper(np.abs(observed - predicted)[None, :], _alike(len(observed)), SHARE)[0])
    nine = f" About 90 % of new rows lie within {rounded(radius)} of their prediction."
    return figure(
        "fit",
        lambda: FitDisplay(observed, predicted, radius),
        "Scatter plot of held-out predictions against observed values, with a band around the "
        "diagonal that contains 90 % of the rows.",
        "Held-out predictions against observed values. The closer to the dashed line, the better."
        + (nine + " The band shows this range." if np.isfinite(radius) else ""),
    )


def _band(subject: Subject) -> Figure | None:
    """Prediction intervals over the feature of a regression with a single feature."""
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
            "Prediction intervals for new rows as a band over the feature, with the training rows.",
            "Prediction intervals for new rows (jackknife+, 90 %), and the training rows."
            + (TUNED_BAND if len(model.cv_results_["params"]) > 1 else ""),
        )
    except ValueError:  # landmarks that every training set chooses itself
        return None


def _alike(n: int) -> np.ndarray:
    """Equal probabilities for the order statistics of n rows."""
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
        f"Histogram of scores with permuted labels, from {low:.3g} to {high:.3g}; the observed "
        f"score is {float(test.score):.3g}, p = {rounded(float(test.pvalue))}.",
        f"Scores with permuted labels ({test.n_permutations_done:,} permutations) and the observed "
        "score. p is the share of scores, including the observed one, that are at least as good. "
        f"The tested score is the {name}.",
    )


def _calibration(subject: Subject) -> Figure | None:
    """Held-out probabilities against observed frequencies."""
    answer = subject.assessment
    if answer is None or answer.probabilities is None or answer.calibration is None:
        return None
    given = subject.y[answer.tested], answer.probabilities[answer.tested]
    options = {"classes": subject.classes, "n_bins": min(10, max(2, subject.n_samples // 30))}
    said = f" The mean difference is {answer.calibration.error:.3f}."
    return figure(
        "calibration",
        lambda: CalibrationDisplay.from_predictions(*given, **options),
        f"Calibration curve: observed frequency against predicted probability.{said}",
        "Observed frequency against predicted probability (nested cross-validation); bars are 95 % "
        f"intervals.{said}",
    )


def _search(subject: Subject) -> Figure | None:
    """The criterion for all settings that were tried."""
    model = subject.model
    chosen = " and ".join(value.replace(" =", "") for value in chosen_values(model))
    tried = [entry.get("gamma") for entry in model.cv_results_["params"]]
    gammas = {gamma for gamma in tried if gamma is not None and np.ndim(gamma) == 0}
    if len(gammas) > 1 and np.ndim(getattr(model, "gamma_", [])) == 0:
        return figure(
            "criterion",
            lambda: CriterionMapDisplay.from_estimator(model),
            "Map of the criterion over kernel width and regularization; the chosen values, "
            f"{chosen}, are marked.",
            "The criterion of held-out predictions for all settings that were tried. Dark is "
            "better; the cross marks the choice.",
        )
    if len(tried) == 1:
        return None
    return figure(
        "path",
        lambda: RegularizationPathDisplay.from_estimator(model),
        f"The criterion as a function of alpha; the chosen value, {chosen}, is marked.",
        "The criterion of held-out predictions as a function of alpha; the ring marks the choice.",
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
        "How well each row is predicted when held out, against its leverage. Leverage is the share "
        "of a row's fitted value that comes from the row itself"
        + ("; margin is the decision for its own class minus the best other." if margins else "."),
    )


def _weights(subject: Subject) -> Figure:
    return figure(
        "weights",
        lambda: BarDisplay.from_estimator(
            subject.model,
            subject.model_features,
            feature_names=model_feature_names(subject),
            n_shown=15,
        ),
        "Bars of the largest weights and activation patterns of the linear kernel, by feature.",
        "The weight of each feature, and its activation pattern: how the feature varies with the "
        "output (Haufe et al. 2014). Only the pattern shows how a feature relates to the target.",
    )


def _members(subject: Subject) -> Figure:
    return figure(
        "members",
        lambda: BarDisplay.from_estimator(subject.model, n_shown=15),
        "Bars of the weights of the members, largest first.",
        "The members of the committee and their weights, found from held-out predictions.",
    )


def _projection(subject: Subject, include_data: bool) -> Figure | None:
    """Histograms for two classes; for more, a scatter plot. It shows single rows and is drawn only
    if the report may contain data.
    """
    if len(subject.classes) == 2:
        return _histograms(subject) if np.isfinite(subject.held_out).any() else None
    if not include_data or not hasattr(subject.model, "scalings_") or subject.record is None:
        return None
    present = np.unique(subject.codes[subject.active])
    names = [subject.class_names[code] for code in present]
    return figure(
        "projection",
        lambda: ProjectionDisplay.from_estimator(subject.model, y=subject.y, class_names=names),
        "Scatter plot of held-out rows on the first two discriminant axes, in "
        f"{len(subject.classes)} classes.",
        "Held-out rows on the discriminant axes of the model of all rows, in units of the "
        "within-class standard deviation.",
    )


def _histograms(subject: Subject) -> Figure:
    names = subject.class_names
    return figure(
        "projection",
        lambda: ProjectionDisplay(
            values=subject.held_out,
            y=subject.y,
            name="held-out decision value",
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
    """Call a function that returns a display, and return its figure as SVG."""
    plt = pyplot()
    with plt.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # text stays text: it is drawn with the reader's fonts
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        display = draw()
        for axes in display.figure_.axes:
            if axes.get_xscale() == "log":  # its own labels are mathematics, which is not parsed
                axes.xaxis.set_minor_formatter("{x:g}" if _narrow(axes.get_xlim()) else "")
            for collection in axes.collections:
                collection.set_rasterized(len(collection.get_offsets()) > MOST_MARKS)
        buffer = io.StringIO()
        display.figure_.savefig(
            buffer, format="svg", dpi=144, metadata={"Date": None, "Creator": None}
        )
        plt.close(display.figure_)
    return Figure(name, _inline(buffer.getvalue(), name), alt, caption)


def _narrow(limits: tuple[float, float]) -> bool:
    """Whether a logarithmic axis has hardly a power of ten on it, so that others are labelled."""
    return limits[1] < 10 * limits[0]


def _inline(svg: str, name: str) -> str:
    """The svg element alone.

    Ids are made unique on the page, colors follow the page, and the size fits the container.
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
    """Round coordinates to hundredths of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\g<1>", attribute[0])


class FitDisplay:
    """Held-out predictions of a regression against observed values."""

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
        ax.set_ylabel("held-out prediction")
