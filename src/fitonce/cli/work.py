"""The commands that take a table, step by step: read, prepare, assess, fit, show, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..assessment import ModelComparison, choice_of, render, significance
from ..assessment.assess import warned
from ..assessment.render import MODELS, joined, kernel_text
from ..assessment.result import plain, summary_of
from ..core.doubt import caught_warnings
from ..estimators.confounding import DONE
from ..estimators.fitted import is_committee
from ..io.contents import skops_io
from ..io.saving import save
from . import answers, contest
from .columns import TableDesign, design
from .doubts import warnings_of
from .models import LANDMARKS_ABOVE, pipeline
from .options import Check, Permuting, Request, ResultFiles, Settings
from .screen import Screen
from .steps import assessed, assessed_rows, fit_all, threads_for, write_page
from .tables import STDIN, Table, make_folder

Source = Callable[[], Table]
MOST_CLASSES = 5  # named in the first lines
MOST_MEMBERS = 8  # of a committee, listed on the screen


@dataclass(frozen=True)
class Opened:
    """A table that was read and prepared, the rows to assess, and the model for it."""

    table: Table
    parts: TableDesign
    judged: TableDesign
    settings: Settings
    estimator: Any
    notes: list[str]
    contest: ModelComparison | None

    @property
    def title(self) -> str:
        return Path(self.table.name).name


def opened(
    command: str, screen: Screen, source: Source, request: Request, settings: Settings, check: Check
) -> Opened:
    """Read the table, prepare it, describe it, and choose the kernel if the table is large."""
    seed = check.random_state
    with screen.bars() as bars:
        bars(0, 0, f"reading {request.table}")
        table = source()
        bars(0, 0, "looking at the columns")
        parts = design(table, **request.roles)
    judged, sampling = assessed_rows(parts, seed)
    pipeline(parts, settings, seed)  # refuse invalid settings before anything is shown
    done = DONE[settings.confounding]
    announce(command, screen, table, parts, [*parts.notes, *sampling], done)
    found = None
    if len(parts.y) > LANDMARKS_ABOVE and parts.confounds is None:
        with screen.bars(), threads_for(parts):
            found, settings = contest.on_a_sample(parts, judged, settings, seed)
    estimator, said = pipeline(parts, settings, seed)
    screen.show(answers.remarks([f"model: {_named(estimator[-1])}", *said]))
    if parts.hints:
        screen.show(answers.warned(parts.hints))
    notes = [*parts.notes, *sampling, *said, *parts.hints]
    return Opened(table, parts, judged, settings, estimator, notes, found)


def _named(model: Any) -> str:
    """A model in a few words."""
    words = MODELS[type(model).__name__]
    return words if is_committee(model) else f"{words}, {kernel_text(model.kernel)}"


def fit_table(
    command: str,
    screen: Screen,
    source: Source,
    request: Request,
    settings: Settings,
    check: Check,
    results: ResultFiles,
) -> None:
    """Describe the table, assess, fit on all rows, show, write."""
    skops_io()  # fail now, not after all the work, if skops is not installed
    model_file, page = results.paths(request.table)
    work = opened(command, screen, source, request, settings, check)
    estimator, parts, judged = work.estimator, work.parts, work.judged
    with screen.bars() as bars, threads_for(parts):
        answer = assessed(estimator, judged, check)
        rivals = work.contest
        # the other models cannot adjust for confounds
        if rivals is None and parts.confounds is None:
            rivals = contest.in_folds(answer, judged, work.settings, check.random_state)
        bars(0, 0, "fitting all rows")
        shown, texts = fit_all(estimator, parts, judged)
    choice = choice_of(estimator)
    warnings = warnings_of([*answer.warnings, *texts], answer, rivals)
    tuned = work.settings.tuned
    screen.show(*answers.answer_parts(screen, answer, rivals, choice, tuned, warnings))
    committee = is_committee(estimator[-1])
    members = {"members": estimator[-1].describe()} if committee else {}
    if committee:
        screen.show(answers.members(estimator[-1].describe(MOST_MEMBERS)), "")
    metadata = {
        **parts.identity,
        "table": work.title,
        "notes": work.notes,
        "settings": asdict(work.settings),
        "chosen": choice,
        "assessment": answer.to_dict(),
        "comparison": None if rivals is None else rivals.to_dict(),
        **members,
    }
    make_folder(model_file)
    files = {"model": str(save(estimator, model_file, metadata=metadata))}
    if results.page:
        try:
            with screen.bars() as bars:
                bars(0, 0, "writing the report")
                write_page(page, shown, parts, judged, answer, work.title, others=rivals)
            files["page"] = str(page)
        except ImportError as error:
            screen.aside(f"no report: {error}")
    screen.json(plain({"command": command, **metadata, "warnings": warnings, "files": files}))
    screen.files(files)


def evaluate_table(
    screen: Screen, source: Source, request: Request, settings: Settings, check: Check
) -> None:
    """Assess one setting."""
    work = opened("evaluate", screen, source, request, settings, check)
    parts = work.parts
    with screen.bars(), threads_for(parts):
        answer = assessed(work.estimator, work.judged, check)
    warnings = warnings_of(answer.warnings, answer)
    screen.show(*answers.answer_parts(screen, answer, work.contest, warnings=warnings))
    result = {**parts.identity, "settings": asdict(work.settings), "assessment": answer.to_dict()}
    screen.json(plain({"command": "evaluate", **result, "warnings": warnings}))


def permute_table(
    screen: Screen, source: Source, request: Request, settings: Settings, permuting: Permuting
) -> None:
    """Run the permutation test alone."""
    with screen.bars() as bars:
        bars(0, 0, f"reading {request.table}")
        table = source()
        parts = design(table, **request.roles)
    estimator, _ = pipeline(parts, settings, permuting.random_state)
    announce("permute", screen, table, parts, parts.notes, DONE[settings.confounding])
    with screen.bars() as bars, threads_for(parts), caught_warnings() as caught:
        bars(0, permuting.permutations, "permutations")
        test, said = significance(
            estimator,
            parts.X,
            parts.y,
            groups=parts.groups,
            confounds=parts.confounds,
            **vars(permuting),
        )
    warnings = [message for message, _ in warned(caught)] + parts.hints
    screen.show("", answers.null(test), screen.block(render.significance(test, said)))
    if warnings:
        screen.show("", answers.warned(warnings))
    found = {"statistic": said, "warnings": warnings, "permutation": summary_of(test, rows=True)}
    screen.json(plain({"command": "permute", **parts.identity, **found}))


def announce(
    command: str,
    screen: Screen,
    table: Table,
    parts: TableDesign,
    notes: Sequence[str],
    done: str = "",
) -> None:
    """Describe the table in a few lines; `done` says how confounds are handled."""
    rows, features = parts.X.shape
    if parts.task == "classification":
        labels, counts = np.unique(parts.y, return_counts=True)
        sizes = [f"{labels[i]} {counts[i]:,}" for i in np.argsort(-counts, kind="stable")]
        few = f"{len(labels)} classes: " if len(labels) > MOST_CLASSES else ""
        target = f"{few}{joined(sizes, MOST_CLASSES)}"
    else:
        target = f"{parts.y.min():.4g} to {parts.y.max():.4g}"
    name = "standard input" if table.name == STDIN else table.name
    used = f"predicted from {features:,} feature{'s' * (features != 1)}"
    head = f"{name}: {rows:,} rows"
    lines = [f"{parts.target} ({target}), {used}", *notes]
    if parts.confounds is not None:
        lines.append(f"confounds: {', '.join(parts.confounds.columns)}, {done}")
    screen.show(answers.announcement(command, head, lines))
