"""What is printed: answers as tables and lines, progress, remarks; the wording comes from
`assessment.render`.

Progress bars on a terminal, plain text elsewhere. With --quiet, only paths and scores.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment, Segments
from rich.text import Text

from ..assessment import Assessment, ModelComparison, render
from ..assessment.render import Block
from ..assessment.result import plain
from ..core.numerical_warnings import kinds_of
from ..core.progress import progress_callback
from ..estimators.confounding import DONE
from ..estimators.fitted import final_step, is_committee
from ..inference import PermutationTest
from .columns import Design
from .errors import printable
from .model import MERGED, described_choice
from .table import STDIN

PIPED_WIDTH = 110
MOST_NAMED = 5  # classes in the first lines
MOST_MEMBERS = 8  # of a committee
PERFECT_ROWS = 30  # warn about a score without any error from this number of rows on
FOREST = "random forest"
TIMES = re.compile(r" \(\d+ times\)$")
ADVICE = re.compile(r" Use an? [^:]*\b(alpha|gamma)\b.*$")
# warnings of the library that do not help the user of a table: its columns are scaled, unknown
# categories are handled, and nested scores show whether a model predicts
BESIDE_THE_POINT = re.compile(
    r"Found unknown categories|try kernel='linear'|scale the features|to have little noise"
    r"|never tested by this cv"
)


class Screen:
    """Standard output for answers, standard error for progress and warnings."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        for stream in (sys.stdout, sys.stderr):
            # do not fail on a terminal that cannot show a character
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        self.quiet, self.as_json = quiet, as_json
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        self.out = Console(file=sys.stdout, highlight=False, width=width)
        self.err = Console(file=sys.stderr, highlight=False)

    def show(self, *parts: RenderableType | None) -> None:
        """Print parts of an answer, one below the other; empty ones are left out."""
        for part in (part for part in parts if part is not None):
            if not self.quiet and not self.as_json:
                _print(self.out, part)

    def finish(self, answer: dict[str, Any], short: str = "") -> None:
        """Print what remains: everything as JSON, or the files that were written; with --quiet only
        their paths or, if there are none, the result in short.
        """
        files = answer.get("files", {})
        if self.as_json:
            print(json.dumps(plain(answer), ensure_ascii=False, allow_nan=False, indent=2))
        elif self.quiet and short and not files:
            print(short)
        else:
            for what, path in files.items():
                label = Text() if self.quiet else Text(f"{what}: ", style="dim")
                self.out.print(label + Text(printable(path)), soft_wrap=True)

    def aside(self, text: str) -> None:
        """Print a remark on standard error, separate from data on standard output."""
        if not self.quiet and not self.as_json:
            self.err.print(Text(printable(text), style="dim"), soft_wrap=True)

    @contextlib.contextmanager
    def working(self, what: str = "") -> Iterator[Bars]:
        """Progress bars while the library works, on a terminal; `what` is done first."""
        progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.err,
            transient=True,
            disable=self.quiet or not self.err.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        bars = Bars(progress)
        with progress, progress_callback(bars):
            if what:
                bars(0, 0, what)
            yield bars


class Bars:
    """Named progress bars of one piece of work.

    A bar ends when it is finished, or, if its total is not known, when the next one begins.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}
        self.ended: set[str] = set()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show that `done` of `total` (0 if unknown) are done."""
        for other in self.ended - {what}:
            self.progress.remove_task(self.tasks.pop(other))
        self.ended = {what} if done >= total else self.ended & set(self.tasks) - {what}
        count = f"{done}/{total}" if total else ""
        if what not in self.tasks:
            self.tasks[what] = self.progress.add_task(printable(what), total=None, count=count)
        task = self.tasks[what]
        self.progress.update(task, completed=done, total=total or None, count=count)


def _print(console: Console, part: RenderableType) -> None:
    """Print, without control characters that come from labels, columns or files."""
    segments = (Segment(printable(one.text), one.style) for one in console.render(part))
    for line in Segment.split_lines(segments):
        while line and not line[-1].text.strip():  # what fills the width
            line.pop()
        ending = [Segment(one.text.rstrip(), one.style) for one in line[-1:]]
        console.print(Segments([*line[:-1], *ending, Segment.line()]), end="", soft_wrap=True)


# ---- before the work -----------------------------------------------------------------------------


def told(block: Block) -> Text:
    """A part of an answer, its title in bold."""
    said = Text(render.as_text([block]))
    said.stylize("bold", 0, len(block.title))
    return said


def announcement(command: str, design: Design, notes: Sequence[str], done: str = "") -> Group:
    """Describe the table that a command is about to work on."""
    rows, features = design.X.shape
    columns = len({feature.source for feature in design.features})
    if design.task == "classification":
        labels, counts = np.unique(design.y, return_counts=True)
        sizes = [f"{labels[i]} {counts[i]:,}" for i in np.argsort(-counts, kind="stable")]
        few = f"{len(labels)} classes: " if len(labels) > MOST_NAMED else ""
        target = f"{few}{render.joined(sizes, MOST_NAMED)}"
    else:
        target = f"{design.y.min():.4g} to {design.y.max():.4g}"
    used = f"{columns:,} column{'s' * (columns != 1)}"
    used += "" if features == columns else f" ({features:,} features)"
    lines = [f"{design.target} ({target}), predicted from {used}", *notes]
    if design.confounds is not None:
        lines.append(f"confounds: {', '.join(design.confounds.columns)}, {DONE[done]}")
    name = "standard input" if design.name == STDIN else design.name
    head = Text.assemble((f"fitonce {command}", "bold"), f"  {name}: {rows:,} rows")
    return Group(head, remarks(lines))


def described_model(model: Any) -> str:
    """A model in a few words."""
    words = render.model_name(model)
    return words if is_committee(model) else f"{words}, {render.kernel_text(model.kernel)}"


def remarks(notes: Sequence[str]) -> Group:
    return Group(
        *(Padding(Text(f"· {note}", style="dim"), (0, 0, 0, 2), expand=False) for note in notes)
    )


def warned(lines: Sequence[str]) -> Group | None:
    """Warnings, one below the other; None if there are none."""
    said = [Text.assemble(("warning: ", "yellow"), line) for line in lines]
    return Group(*said) if said else None


# ---- an assessment -------------------------------------------------------------------------------


def show_assessment(
    screen: Screen,
    answer: Assessment,
    others: ModelComparison | None = None,
    warnings: Sequence[str] = (),
    estimator: Any = None,
    choice: Mapping[str, Any] | None = None,
) -> None:
    """An assessment, from the headline to the warnings, with empty lines between its parts."""
    test = answer.permutation
    blocks = (
        render.scores(answer),
        other_models(others) if others is not None else None,
        render.significance(test, answer.permutation_statistic, answer.score)
        if test is not None
        else None,
        render.confusion(answer.confusion, answer.classes, answer.repeats),
        render.calibration(answer),
        chosen(estimator, choice, answer) if choice else None,
    )
    for block in filter(None, blocks):
        screen.show("", told(block))
    if is_committee(final_step(estimator)):
        screen.show("", committee(estimator[-1]))
    if warnings:
        screen.show("", warned(warnings))
    screen.show("")


def other_models(others: ModelComparison) -> Block:
    """Scores of other kinds of models on the same rows, in one line."""
    said = ", ".join(f"{n} {render.number(score.value)}" for n, score in others.scores.items())
    name = render.score_name(others.score_name)
    more = "" if FOREST in others.scores else "; `fitonce fit --effort best` adds a random forest"
    return Block(f"Other models: {name} of {said} ({others.cv}){more}")


def chosen(estimator: Any, choice: Mapping[str, Any], answer: Assessment) -> Block:
    """The chosen settings, and how categories were merged."""
    given = estimator[-1].get_params()
    tuned = [n for n in choice if isinstance(given.get(n), list) or given.get(n) == "tune"]
    block = render.chosen(choice, answer, tuned)
    if MERGED not in choice:
        return block
    folds = [described_choice(fold[MERGED]) for fold in answer.choices if MERGED in fold]
    notes = [*block.notes, f"categories: {described_choice(choice[MERGED])}"]
    notes += [f"categories in the folds: {render.spread(folds)}"] if folds else []
    return replace(block, notes=notes)


def committee(model: Any) -> Group:
    """The members of a committee with their weights."""
    head, *lines = model.describe(MOST_MEMBERS).splitlines()
    return Group(Text.assemble(("Committee: ", "bold"), head), *(Text(f"  {one}") for one in lines))


def null(test: PermutationTest) -> Text:
    """The observed score beside those with permuted labels."""
    name, found = render.score_name(next(iter(test.scores))), test.permutation_scores
    permuted = f"{np.mean(found):.3f} on average, {np.max(found):.3f} at most"
    return Text(f"observed {name} {test.score:.3f}; with permuted labels {permuted}\n")


# ---- warnings ------------------------------------------------------------------------------------


def warnings_of(
    texts: Iterable[str],
    answer: Assessment,
    settings: Mapping[str, Any],
    others: ModelComparison | None = None,
) -> list[str]:
    """What the user should know about the result: each kind of warning once, and warnings that
    follow from the scores. Settings that the program chose are not advised against.
    """
    plain = [TIMES.sub("", text) for text in texts if not BESIDE_THE_POINT.search(text)]
    if {settings.get(name, "tune") for name in ("gamma", "alpha")} == {"tune"}:
        plain = [ADVICE.sub("", text) for text in plain]
    kinds = kinds_of((UserWarning, text) for text in plain)
    found = [said[0] for _, said in kinds]
    if answer.score.value >= 1.0 - 1e-9 and answer.n_samples >= PERFECT_ROWS:
        found.append(
            "every held-out row is predicted correctly. Check that no column was derived from the "
            "target or is known only after it."
        )
    if answer.confusion is not None and answer.classes is not None:
        counts, guesses = answer.confusion.sum(axis=1), answer.confusion.sum(axis=0)
        never = [str(c) for c in answer.classes[(guesses == 0) & (counts > 0)]]
        if never:
            found.append(
                f"the model never predicts {render.joined(never)}: its accuracy says little, "
                "balanced accuracy and AUC say more. --priors equal weighs all classes alike."
            )
    ours = None if others is None else next(iter(others.scores))
    better = None if others is None or ours is None else others.clearly_better(ours)
    if others is not None and ours is not None and better is not None:
        mine, theirs = (others.scores[name].value for name in (ours, better))
        found.append(
            f"{better}: clearly better on the same rows ({theirs:.3f} versus {mine:.3f}). "
            "A kernel model does not suit this table as it is."
        )
    return found
