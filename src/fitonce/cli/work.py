"""What the commands on a table do, step by step: take apart, assess, fit, show, write."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..assessment import Assessment, assess, choice_of, compare, significance
from ..assessment.assess import warned
from ..assessment.result import plain, summary_of
from ..assessment.words import MODELS, listed
from ..core.doubt import caught_warnings
from ..io.saving import save
from . import answers
from .columns import TableDesign, design
from .files import places
from .models import pipeline
from .options import Check, Permuting, Request, ResultFiles, Settings
from .screen import Screen
from .tables import STDIN, Table

SMALL = 1000  # rows up to which one BLAS thread is faster than several
# rows; above, a sample is assessed and chooses the kernel width
SAMPLE_ABOVE, SAMPLE = 20_000, 10_000


def fit_table(
    command: str,
    screen: Screen,
    table: Table,
    request: Request,
    settings: Settings,
    check: Check,
    results: ResultFiles,
) -> None:
    """Announce, assess, fit on all rows, show, write."""
    model_file, page = places(results.out, table.stem)
    parts = design(table, **request.roles)
    estimator, said = pipeline(parts, settings, check.random_state)
    judged, sampling = assessed_rows(parts, check.random_state)
    notes = [*parts.notes, *said, *sampling]
    announce(command, screen, table, parts, estimator, notes)
    with screen.bars() as bars, threads_for(parts):
        answer = assessed(estimator, judged, check)
        bars(0, 0, "fit on all rows")
        doubts = fit_all(estimator, parts, judged)
    choice = choice_of(estimator)
    screen.show(*answers.answer_parts(screen, answer, choice, settings.tuned, doubts))
    title = Path(table.name).name
    metadata = {
        **parts.identity,
        "table": title,
        "notes": notes,
        "settings": asdict(settings),
        "chosen": choice,
        "assessment": answer.to_dict(),
    }
    files = {"model": str(save(estimator, model_file, metadata=metadata))}
    if results.page and judged is not parts:
        screen.aside(f"no page: it would hold {len(parts.y):,} rows")
    elif results.page:
        try:
            write_page(page, estimator, parts, answer, title)
            files["page"] = str(page)
        except ImportError as error:
            screen.aside(f"no page: {error}")
    screen.json(plain({"command": command, **metadata, "doubts": doubts, "files": files}))
    screen.paths(list(files.values()))


def evaluate_table(
    screen: Screen,
    table: Table,
    request: Request,
    settings: Settings,
    other: Settings | None,
    check: Check,
) -> None:
    """Assess one setting, or two on the same folds."""
    parts = design(table, **request.roles)
    estimator, said = pipeline(parts, settings, check.random_state)
    second = None if other is None else pipeline(parts, other, check.random_state)[0]
    judged, sampling = assessed_rows(parts, check.random_state)
    announce("evaluate", screen, table, parts, estimator, [*parts.notes, *said, *sampling])
    result = {"command": "evaluate", **parts.identity, "settings": asdict(settings)}
    with screen.bars(), threads_for(parts):
        answer = assessed(estimator, judged, check)
        again = replace(check, permutations="0")
        beside = None if second is None else assessed(second, judged, again)
    result["assessment"] = answer.to_dict()
    screen.show(*answers.answer_parts(screen, answer, {}, (), ()))
    if other is not None and beside is not None:
        comparison = compare(answer, beside)
        both = [(str(settings), answer), (str(other), beside)]
        screen.show(answers.side_by_side(screen, both, comparison))
        result["versus"] = {
            "settings": asdict(other),
            "assessment": beside.to_dict(),
            "comparison": vars(comparison),
        }
    screen.json(plain(result))


def permute_table(
    screen: Screen, table: Table, request: Request, settings: Settings, permuting: Permuting
) -> None:
    """The permutation test by itself."""
    parts = design(table, **request.roles)
    estimator, _ = pipeline(parts, settings, permuting.random_state)
    announce("permute", screen, table, parts, estimator, parts.notes)
    with screen.bars() as bars, threads_for(parts), caught_warnings() as caught:
        bars(0, permuting.permutations, "permutations")
        test, said = significance(
            estimator, parts.X, parts.y, groups=parts.groups, **vars(permuting)
        )
    doubts = [message for message, _ in warned(caught)]
    screen.show("", answers.null(test), answers.significance(test, said))
    if doubts:
        screen.show("", answers.doubts(doubts))
    result = {**parts.identity, "statistic": said, "doubts": doubts}
    result["permutation"] = summary_of(test, rows=True)
    screen.json(plain({"command": "permute", **result}))


# ---- steps ---------------------------------------------------------------------------------------


def announce(
    command: str,
    screen: Screen,
    table: Table,
    parts: TableDesign,
    estimator: Any,
    notes: Sequence[str],
) -> None:
    """The table and the model in a few lines."""
    rows, features = parts.X.shape
    if parts.task == "classification":
        labels, counts = np.unique(parts.y, return_counts=True)
        sizes = [f"{labels[i]} {counts[i]:,}" for i in np.argsort(-counts, kind="stable")]
        target = f"{len(labels)} classes ({listed(sizes, 5)})"
    else:
        target = f"numbers from {parts.y.min():.4g} to {parts.y.max():.4g}"
    model = f"model: {MODELS[type(estimator[-1]).__name__]}, {estimator[-1].kernel} kernel"
    name = "standard input" if table.name == STDIN else table.name
    size = f"{rows:,} rows, {features:,} feature{'s' * (features != 1)}"
    what = f"{name}: {size}; target {parts.target}: {target}"
    screen.show(answers.announcement(command, what, [model, *notes]))


def threads_for(parts: TableDesign) -> Any:
    """One BLAS thread for a small table.

    Its matrices lose time to more, most of it where other programs are at work.
    """
    return threadpool_limits(1 if len(parts.y) <= SMALL else None)


def assessed_rows(parts: TableDesign, seed: int) -> tuple[TableDesign, list[str]]:
    """The rows on which a model is assessed: all of them, or a sample of very many."""
    if len(parts.y) <= SAMPLE_ABOVE:
        return parts, []
    return parts.sample(SAMPLE, seed), [
        f"more than {SAMPLE_ABOVE:,} rows: scores and kernel width come from a random sample of "
        f"{SAMPLE:,}; the model is fitted on all"
    ]


def assessed(estimator: Any, parts: TableDesign, check: Check) -> Assessment:
    """The assessment; its warnings are in it, so that Python's need not be printed."""
    given = {"groups": parts.groups, "sample_weight": parts.weights, **check.options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return assess(estimator, parts.X, parts.y, **given)


def fit_all(estimator: Any, parts: TableDesign, judged: TableDesign) -> list[str]:
    """Fit on all rows, with the kernel width that a sample chooses where there is one.

    Returns what was warned of.
    """
    with caught_warnings() as caught:
        if judged is not parts:
            _fit(estimator, judged)
            gamma = getattr(estimator[-1], "gamma_", None)
            if gamma is not None:
                estimator.set_params(model__gamma=gamma)
        _fit(estimator, parts)
    return [message for message, _ in warned(caught)]


def _fit(estimator: Any, parts: TableDesign) -> None:
    given = {"model__groups": parts.groups, "model__sample_weight": parts.weights}
    estimator.fit(parts.X, parts.y, **{name: v for name, v in given.items() if v is not None})


def write_page(
    path: Path, estimator: Any, parts: TableDesign, answer: Assessment, title: str, **options: Any
) -> None:
    """Write the HTML page of a fitted model; ImportError where what it needs is not installed."""
    from ..report import write_report

    given = {"feature_names": parts.X.columns, "sample_weight": parts.weights, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the fit have been shown
        write_report(path, estimator, parts.X, parts.y, assessment=answer, title=title, **given)
