"""Which plots a page has, with their captions and their words for those who cannot see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plotting import (
    CalibrationDisplay,
    CriterionMapDisplay,
    InfluenceDisplay,
    PermutationNullDisplay,
    ProjectionDisplay,
    RegularizationPathDisplay,
    WeightsDisplay,
)
from ..plotting.style import rounded
from .figures import Figure, FitDisplay, figure
from .subject import Subject, shortened
from .words import own_splits, tuned


def performance_figures(subject: Subject, include_data: bool) -> list[Figure]:
    found: list[Figure] = []
    assessment = subject.assessment
    if subject.classification:
        calibration = _calibration(subject)
        if calibration is not None:
            found.append(calibration)
    elif include_data and subject.y.ndim == 1 and subject.predicted_rows.sum() > 1:
        rows = subject.predicted_rows
        observed, predicted = (
            subject.y[rows].astype(float),
            np.asarray(subject.predictions[rows], dtype=float),
        )
        found.append(
            figure(
                "fit",
                lambda: FitDisplay(observed, predicted),
                "Scatter plot of held-out predictions against observed values.",
                "Held-out predictions against observed values. The closer to the dashed line, the "
                "better.",
            )
        )
    if assessment is not None and assessment.permutation is not None:
        test, name = assessment.permutation, assessment.permutation_statistic
        low, high = np.nanmin(test.permutation_scores), np.nanmax(test.permutation_scores)
        found.append(
            figure(
                "null",
                lambda: PermutationNullDisplay.from_predictions(
                    test, name=f"{next(iter(test.scores)).replace('_', ' ')}, held out"
                ),
                f"Histogram of scores under permuted labels, from {low:.3g} to {high:.3g}; the "
                f"observed score is {float(test.score):.3g}, "
                f"p = {rounded(float(test.pvalue))}.",
                f"Scores under {test.n_permutations_done:,} relabellings and the observed one. p "
                "is the share of relabellings that do at "
                "least as well, the observed one counted among them. Scored was the "
                f"{shortened(name, 300)}.",
            )
        )
    return found


def _calibration(subject: Subject) -> Figure | None:
    """Held-out probabilities against what happened: nested ones where there are some."""
    assessment, model = subject.assessment, subject.model
    bins = int(min(10, max(2, subject.n_samples // 30)))
    if assessment is not None and assessment.probabilities is not None:
        rows = assessment.tested
        y, p = subject.y[rows], assessment.probabilities[rows]

        def draw() -> Any:
            return CalibrationDisplay.from_predictions(y, p, classes=subject.classes, n_bins=bins)

        source = "nested cross-validation"
    elif hasattr(model, "temperature_") and getattr(model, "calibration", None) in (
        "temperature",
        None,
    ):

        def draw() -> Any:
            return CalibrationDisplay.from_estimator(model, subject.y, n_bins=bins)

        source = own_splits(subject)
    else:
        return None
    error = (
        assessment.calibration.error
        if assessment is not None and assessment.calibration is not None
        else None
    )
    said = f" On average they differ by {error:.3f}." if error is not None else ""
    return figure(
        "calibration",
        draw,
        f"Calibration curve: share observed against probability given.{said}",
        f"How often it happened against how often it was said to ({source}); bars are 95 % "
        f"intervals.{said}",
    )


def choice_figures(subject: Subject, include_data: bool) -> list[Figure]:
    model, found = subject.model, []
    if subject.classification:
        projection = _projection(subject, include_data)
        if projection is not None:
            found.append(projection)
    gammas = {
        entry.get("gamma")
        for entry in model.cv_results_["params"]
        if np.ndim(entry.get("gamma")) == 0
    } - {None}
    if len(gammas) > 1 and np.ndim(getattr(model, "gamma_", [])) == 0:
        found.append(
            figure(
                "criterion",
                lambda: CriterionMapDisplay.from_estimator(model),
                "Map of the criterion over kernel width and regularisation; the choice, gamma "
                f"{rounded(float(model.gamma_))} and alpha "
                f"{rounded(float(model.alpha_))}, is marked.",
                "The criterion of held-out predictions over everything that was tried; dark is "
                "better, the cross is the choice.",
            )
        )
    elif tuned(subject):
        found.append(
            figure(
                "path",
                lambda: RegularizationPathDisplay.from_estimator(model),
                f"The criterion along alpha; the choice, alpha {rounded(float(model.alpha_))}, is "
                "marked.",
                "The criterion of held-out predictions along the regularisation; the ring is the "
                "choice.",
            )
        )
    if (
        include_data
        and len(subject.held_out) > 2
        and np.isfinite(subject.leverage).all()
        and subject.y.ndim == 1
    ):
        found.append(
            figure(
                "influence",
                lambda: InfluenceDisplay.from_estimator(
                    model, subject.y, row_names=subject.row_names
                ),
                "Scatter plot of each row's leverage against its held-out margin or residual; the "
                "most influential rows are named.",
                "How much the model leans on each row, against how well it predicts the row "
                "unseen.",
            )
        )
    if hasattr(model, "coef_"):
        names = subject.model_feature_names
        found.append(
            figure(
                "weights",
                lambda: WeightsDisplay.from_estimator(
                    model, subject.model_features, feature_names=names, n_features=15
                ),
                "Bars of the largest weights and activation patterns of the linear kernel, by "
                "feature.",
                "What multiplies each feature, and how each feature varies with the output (Haufe "
                "et al. 2014): only the latter may be "
                "read as what the feature has to do with the target.",
            )
        )
    return found


def _projection(subject: Subject, include_data: bool) -> Figure | None:
    """Histograms of two classes.

    A scatter of more, which shows single rows and goes only where data may go.
    """
    model, binary = subject.model, len(subject.classes) == 2
    if binary:
        values = subject.held_out
        if not np.isfinite(values).any():
            return None
        return figure(
            "projection",
            lambda: ProjectionDisplay(
                values=values,
                y=subject.y,
                name="decision value, held out",
                threshold=0.0,
                class_names=subject.class_names,
            ).plot(),
            f"Histograms of held-out decision values of {subject.class_names[0]} and "
            f"{subject.class_names[1]}; the threshold is at zero.",
            "Held-out decision values by observed class. Rows on the wrong side of the threshold "
            "are misclassified.",
        )
    if not include_data or not hasattr(model, "scalings_") or getattr(model, "_kept", None) is None:
        return None
    present = np.unique(subject.y[model._kept.training.active])
    names = [
        name
        for name, label in zip(subject.class_names, subject.classes, strict=True)
        if label in present
    ]
    return figure(
        "projection",
        lambda: ProjectionDisplay.from_estimator(model, y=subject.y, class_names=names),
        "Scatter plot of held-out rows on the first two discriminant axes, in "
        f"{len(subject.classes)} classes.",
        "Held-out rows on the discriminant axes of the whole fit, in units of the within-class "
        "standard deviation.",
    )
