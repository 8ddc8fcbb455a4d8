"""Steps that several commands share: the rows to assess, the assessment, the fit, the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ..assessment import Assessment, assess
from ..assessment.assess import warned
from ..core.doubt import caught_warnings
from ..estimators.fitted import chooses_steps
from .columns import TableDesign
from .contest import fit
from .options import Check
from .preprocessing import chosen_categories
from .tables import make_folder

SMALL = 1000  # rows up to which one BLAS thread is faster than several
# rows; above this, a sample is assessed and chooses the kernel width
SAMPLE_ABOVE, SAMPLE = 20_000, 10_000
MOST_NUMBERS = 100_000_000  # largest table from which a model without landmarks uses all rows


def threads_for(parts: TableDesign) -> Any:
    """Use one BLAS thread for a small table.

    Several threads slow down small matrices, most of all when other programs are running.
    """
    return threadpool_limits(1 if len(parts.y) <= SMALL else None)


def assessed_rows(parts: TableDesign, seed: int) -> tuple[TableDesign, list[str]]:
    """The rows on which a model is assessed: all of them, or a sample if there are very many."""
    if len(parts.y) <= SAMPLE_ABOVE:
        return parts, []
    return parts.sample(SAMPLE, seed), [
        f"more than {SAMPLE_ABOVE:,} rows: scores and kernel width come from a random sample of "
        f"{SAMPLE:,}; the model is fitted on all rows"
    ]


def assessed(estimator: Any, parts: TableDesign, check: Check) -> Assessment:
    """The assessment; it contains its warnings, so that Python need not print them."""
    rows = {
        "groups": parts.groups,
        "sample_weight": parts.weights,
        "confounds": parts.confounds,
    }
    with caught_warnings():
        return assess(estimator, parts.X, parts.y, **rows | check.options)


def fit_all(estimator: Any, parts: TableDesign, judged: TableDesign) -> tuple[Any, list[str]]:
    """Fit on all rows, with the kernel and encoding chosen on a sample if there is one.

    Returns the model of the assessed rows, which is the same model if these are all rows, and the
    warnings.
    """
    with caught_warnings() as caught:
        shown = estimator
        if judged is not parts:
            shown = clone(estimator)
            fit(shown, judged)
            names = ("kernel", "gamma", "degree", "coef0")
            kernel = {n: getattr(shown[-1], f"{n}_") for n in names if hasattr(shown[-1], f"{n}_")}
            estimator.set_params(**{f"model__{name}": value for name, value in kernel.items()})
            if chooses_steps(shown):
                estimator.set_params(candidates=[shown.chosen_])
        fit(estimator, fitted_rows(estimator, parts))
    return shown, [message for message, _ in warned(caught)]


def fitted_rows(estimator: Any, parts: TableDesign) -> TableDesign:
    """All rows, or as many as a model without landmarks can process at once."""
    most = MOST_NUMBERS // max(parts.X.width, 1)
    landmarks = getattr(estimator[-1], "landmarks", None)
    return parts if landmarks is not None else parts.sample(most, 0)


def write_page(
    path: Path,
    estimator: Any,
    parts: TableDesign,
    judged: TableDesign,
    answer: Assessment,
    name: str,
    **options: Any,
) -> None:
    """Write the HTML report of a model of the assessed rows; raises ImportError if a package is
    missing.
    """
    from ..report import write_report
    from ..report.subject import Origin

    total = None if judged is parts else len(parts.y)
    given = {
        "feature_names": judged.X.columns,
        "row_names": judged.row_names,
        "sample_weight": judged.weights,
        "confounds": judged.confounds,
        "origin": Origin(
            name, parts.target, [*parts.notes, *chosen_categories(estimator), *parts.hints], total
        ),
        "title": name if total is None else f"{name}: a random sample of its rows",
        **options,
    }
    make_folder(path)
    with caught_warnings():  # those of the fit have been shown already
        write_report(path, estimator, judged.X, judged.y, assessment=answer, **given)
