"""The page: results in words, tables and plots, and, if it may contain data, the explorer."""

from __future__ import annotations

import base64
import datetime
import hashlib
import importlib
import importlib.resources
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..assessment import ModelComparison, render
from ..assessment.data import versions
from ..core.atomic import check_place, write_atomically
from ..core.version import __version__
from ..estimators.confounding import confounded_words
from ..estimators.fitted import criterion_of
from ..plotting.style import rounded
from .drawings import choice_figures, columns_figure, performance_figures
from .explorer import NO_ROOM, Explorer, Progress, build_explorer, legend, numbers, script_json
from .subject import Origin, Subject, calibrated, chosen_values, own_splits
from .tables import (
    TABLE_ROWS,
    class_sets,
    dependence,
    first_table,
    importance,
    rows_table,
)

# replaced by the size of the page; contains a noncharacter, which names cannot contain
SIZE = "\ufdd0size\ufdd0"
FILTERS = (
    rounded,
    render.count,
    render.model_name,
    render.p_value,
    render.percent,
    render.score_name,
    render.setting,
    render.shortened,
)
FUNCTIONS = (
    calibrated,
    criterion_of,
    chosen_values,
    own_splits,
    render.about_small,
    render.about_tested,
    render.baseline_name,
    render.scores,
    render.columns,
    render.interval_text,
    render.joined,
    render.relabellings,
    render.score_text,
    render.shortened,
)
FEW = 5  # a class with fewer rows gives unreliable results
FEW_ROWS = 50  # in the table, if the page must be small
SPARE = 20_000  # characters that the explorer needs in addition to its rows
PER_ROW = 60  # characters for the index, position and class of a row, without its name


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    X: Any,
    y: Any,
    *,
    assessment: Any = None,
    feature_names: Sequence[Any] | None = None,
    row_names: Sequence[Any] | None = None,
    title: str | None = None,
    include_data: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
    confounds: Any = None,
    verification: Any = None,
    others: ModelComparison | None = None,
    origin: Origin | None = None,
    max_megabytes: float = 2.0,
    progress: Progress | None = None,
) -> Path:
    """Write one HTML file that explains a fitted model and, if it may contain data, lets the reader
    try other settings.

    The file needs no network and no other file. It is written completely or not at all.

    Parameters
    ----------
    path : path-like
        The file to write; an existing file is replaced.
    model : fitted estimator
        An estimator of fitonce, or a Pipeline that ends in one.
    X, y : arrays or tables
        The data that the model was fitted on, in the same order. For a pipeline, the report shows
        the columns as given; the explorer works on the transformed columns.
    assessment : Assessment, default=None
        The result of `fitonce.assess`. None makes it, without a permutation test.
    feature_names, row_names : sequences, default=None
        Names of columns and rows; by default those of the data frame.
    title : str, default=None
        Heading of the page.
    include_data : bool, default=True
        Whether to include the training rows in the page, and what shows single rows.
    sample_weight, groups, confounds : arrays, default=None
        The weights, groups and confounds that the model was fitted with; weights and groups are
        needed only for models loaded from a file.
    verification : Verification, default=None
        The result of ``model.verify()``, to be quoted in the methods section.
    others : ModelComparison, default=None
        Other models on the same held-out rows: the result of ``fitonce.compare``, the assessment
        first.
    origin : Origin, default=None
        Names of the data and the target, columns left out, treatment of missing values.
    max_megabytes : float, default=2
        Largest size of the page; the explorer makes room.
    progress : callable, default=None
        Called as ``progress("explorer", done, total)`` after every position of the explorer.

    Returns
    -------
    Path
        The path of the page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(Path(folder) / "iris.html", model, X, y, title="Iris")
    ...     print("<title>Iris</title>" in page.read_text(encoding="utf-8"))
    True
    """
    _check_extra()
    target = Path(path)
    check_place(target)
    if not max_megabytes > 0:
        raise ValueError(f"max_megabytes must be positive, got {max_megabytes!r} instead.")
    subject = Subject.of(
        model,
        X,
        y,
        sample_weight=sample_weight,
        groups=groups,
        confounds=confounds,
        assessment=assessment,
        features=feature_names,
        rows=row_names,
        origin=origin,
    )
    context = _context(subject, title, include_data, verification)
    context["first_table"] = first_table(subject, others)
    write_atomically(target, _fitting(context, max_megabytes * 1e6, progress))
    return target


def _fitting(context: dict[str, Any], limit: float, progress: Progress | None) -> str:
    """The page as text, within the size limit: with an explorer that fits, or without one, or with
    a short table of rows.
    """
    subject, include_data = context["subject"], context["include_data"]
    for n_rows in (TABLE_ROWS, FEW_ROWS):
        context["rows"] = rows_table(subject, n_rows) if include_data else None
        page = _rendered(context)
        if _size(page) <= limit:
            break
    else:
        raise ValueError(
            f"max_megabytes must be at least {_size(page) / 1e6:.2g} for this page, got "
            f"{limit / 1e6:g} instead."
        )
    names = sum(len(name) for name in subject.row_names) + PER_ROW * subject.n_samples
    room = limit - _size(page) - SPARE - names * include_data
    larger = _rendered(context | _explored(build_explorer(subject, room, progress), include_data))
    page = larger if _size(larger) <= limit else page
    size = _size(page)
    return page.replace(SIZE, f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB")


def _explored(explorer: Explorer | str, include_data: bool) -> dict[str, Any]:
    """The template variables for an explorer, or for the reason why there is none."""
    if isinstance(explorer, str):
        return {"no_explorer": explorer}
    return {
        "explorer": explorer,
        "legend": legend(explorer.results.subject.class_names),
        "numbers": script_json(numbers(explorer, include_data)),
    }


def _size(page: str) -> int:
    return len(page.encode("utf-8"))


def _check_extra() -> None:
    """Check before any work that the required packages are installed, with what they need."""
    try:
        for module in ("jinja2", "matplotlib.pyplot"):
            importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"reports need Jinja2 and matplotlib: pip install 'fitonce[report]' ({error})."
        ) from error


def _rendered(values: dict[str, Any]) -> str:
    page: str = _template().render(**values)
    return page.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be written


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {function.__name__: function for function in FILTERS}
    environment.globals |= {function.__name__: function for function in FUNCTIONS}
    return environment.from_string(_resource("page.html"))


def _resource(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _context(
    subject: Subject, title: str | None, include_data: bool, verification: Any
) -> dict[str, Any]:
    """The template variables, except for the table of rows and the explorer."""
    answer, left_out = subject.assessment, importance(subject)
    script = _resource("rows.js") + _resource("explorer.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return {
        "title": render.shortened(title or _default_title(subject), 200),
        "today": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "version": __version__,
        "css": _resource("page.css"),
        "script": script,
        "script_hash": f"sha256-{digest}",
        "subject": subject,
        "model": subject.model,
        "confounds": confounded_words(subject.estimator, subject.confounds, subject.n_samples),
        "assessment": answer,
        "verification": verification,
        "include_data": include_data,
        "doubts": _doubts(subject),
        "confusion": answer and render.confusion(answer.confusion, subject.class_names),
        "class_sets": class_sets(subject),
        "dependence": dependence(subject) if include_data else [],
        "performance_figures": performance_figures(subject, include_data),
        "choice_figures": choice_figures(subject, include_data),
        "importance": left_out,
        "columns_figure": columns_figure(left_out),
        "explorer": None,
        "no_explorer": NO_ROOM,
        "size": SIZE,
        "versions": ", ".join(map(" ".join, versions().items())),
    }


def _default_title(subject: Subject) -> str:
    named = subject.origin.data or subject.origin.target
    if named:
        return named if subject.origin.data else f"Predicting {named}"
    name = render.model_name(subject.model)
    return f"{name[0].upper()}{name[1:]} on {subject.n_samples:,} rows"


def _doubts(subject: Subject) -> list[str]:
    """Warnings that a reader needs before interpreting the results."""
    found = [] if subject.assessment is None else list(subject.assessment.warnings)
    sizes = zip(subject.class_names, subject.sizes, strict=True)
    few = render.joined([name for name, size in sizes if size < FEW])
    if few:
        found.append(f"Fewer than five rows of {few}: results for so few rows are unreliable.")
    if subject.n_samples < 20:
        found.append(
            f"There are only {subject.n_samples} rows: every figure on this page is uncertain."
        )
    return found
