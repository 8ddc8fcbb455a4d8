"""The page: results in words, tables and plots, and where data may go along, the explorer."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.resources
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.atomic import write_atomically
from .drawings import choice_figures, performance_figures
from .explorer import Explorer, build_explorer
from .panel import explorer_context
from .subject import Subject, shortened
from .tables import TABLE_ROWS, confusion, metrics, rows_table
from .words import (
    SIZE,
    cards,
    choice_text,
    default_title,
    doubts,
    footer,
    methods_text,
    performance_text,
    settings,
    subtitle,
    summary,
)

BYTES_PER_ENTRY = 16.0 / 3.0  # of V: four bytes in base64
OVERHEAD = 2.0  # megabytes left to everything but the explorer


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
    verification: Any = None,
    max_megabytes: float = 20.0,
) -> Path:
    """Write one HTML file that explains a fitted model and, where data may go along, lets its
    reader try others.

    The file needs no network and no other file. It is complete before it appears under its name: an
    interrupted call leaves nothing, or the file that was there before.

    Parameters
    ----------
    path : path-like
        The file to write; an existing one is replaced.
    model : fitted estimator
        One of fitonce's, or a Pipeline that ends in one.
    X, y : arrays or tables
        What the model was fitted on, in the same order. A pipeline's columns are shown as given,
        its explorer works on what the pipeline makes of them.
    assessment : Assessment, default=None
        What `fitonce.assess` returned: nested scores with intervals, baseline, calibration,
        permutation test. Without it the page shows held-out results of the chosen settings and says
        that they are optimistic.
    feature_names, row_names : sequences, default=None
        Names of columns and rows; those of a data frame by default.
    title : str, default=None
        Heading of the page.
    include_data : bool, default=True
        Whether the training rows go into the page. Without them it has no table of rows, no plot of
        single rows, and its explorer shows errors only.
    sample_weight : array, default=None
        The weights the model was fitted with; needed only for models that were read from a file.
    verification : Verification, default=None
        What ``model.verify()`` returned, quoted among the methods.
    max_megabytes : float, default=20
        The page does not become larger than this: fewer kernel widths and, for many rows, fewer
        directions are embedded.

    Returns
    -------
    Path
        Where the page is.

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
    subject = Subject.of(model, X, y, sample_weight, assessment, feature_names, row_names)
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {str(target.parent)!r} does not exist: create it first."
        )
    if not max_megabytes > 0:
        raise ValueError(f"max_megabytes must be positive, got {max_megabytes!r} instead.")
    page = render(subject, title, include_data, verification, max_megabytes)
    return write_atomically(target, page)


def render(
    subject: Subject, title: str | None, include_data: bool, verification: Any, max_megabytes: float
) -> str:
    """The page as text, not larger than asked for."""
    entries = int(max(max_megabytes - OVERHEAD, 0.1 * max_megabytes) * 1e6 / BYTES_PER_ENTRY)
    explorer = build_explorer(
        subject.model, subject.model_features, subject.y, subject.sample_weight, entries
    )
    reason = (
        f"There is no explorer: it would not fit into the {max_megabytes:g} MB that were asked for."
    )
    smaller = [(reason, TABLE_ROWS), (reason, 50)]
    attempts = (
        [(explorer, TABLE_ROWS), *smaller]
        if isinstance(explorer, str) or entries >= explorer.n_samples
        else smaller
    )
    for attempt, rows in attempts:
        page = _rendered(context(subject, title, include_data, verification, attempt, rows))
        size = len(page.encode("utf-8"))
        if size <= max_megabytes * 1e6:
            return page.replace(SIZE, _megabytes(size))
    raise ValueError(
        f"max_megabytes must be at least {size / 1e6:.2g} for this page, got {max_megabytes:g} "
        "instead."
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _rendered(values: dict[str, Any]) -> str:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError(
            "reports need Jinja2 and matplotlib: pip install 'fitonce[report]'"
        ) from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {}
    template = environment.from_string(_resource("page.html"))
    return str(template.render(**values))


def _resource(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def context(
    subject: Subject,
    title: str | None,
    include_data: bool,
    verification: Any,
    explorer: Explorer | str,
    n_rows: int = TABLE_ROWS,
) -> dict[str, Any]:
    """Everything the template asks for."""
    script = _resource("explorer.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    version = str(importlib.import_module("fitonce").__version__)
    return {
        "title": shortened(title or default_title(subject), 200),
        "subtitle": subtitle(subject),
        "version": version,
        "css": _markup(_resource("page.css")),
        "script": script,
        "script_hash": f"sha256-{digest}",
        "cards": cards(subject),
        "summary": summary(subject),
        "warnings": doubts(subject),
        "performance": performance_text(subject),
        "metrics": metrics(subject),
        "confusion": confusion(subject),
        "performance_figures": performance_figures(subject, include_data),
        "choice": choice_text(subject),
        "choice_figures": choice_figures(subject, include_data),
        "explorer": explorer_context(subject, explorer, include_data)
        if isinstance(explorer, Explorer)
        else None,
        "rows": rows_table(subject, n_rows) if include_data else None,
        "methods": methods_text(subject, version, verification),
        "settings": settings(subject, version, explorer),
        "footer": footer(version, include_data, explorer),
    }


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)
