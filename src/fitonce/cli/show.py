"""What is printed: blocks of an answer, remarks, warnings, progress; the wording of results comes
from `assessment.render`.

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
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
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
from .model import MERGED, described_choice
from .table import STDIN
from .words import printable

PIPED_WIDTH = 110
MOST_NAMED = 5  # classes in the first lines
MOST_MEMBERS = 8  # of a committee
PERFECT_ROWS = 30  # warn about a score without any error from this number of rows on
FOREST = "random forest"
TIMES = re.compile(r" \(\d+ times\)$")
ADVICE = re.compile(r" Use an? [^:]*\b(alpha|gamma)\b.*$")
# warnings of the library that do not help the user of a table: its columns are scaled, unknown
# categories are handled, nested scores show whether a model predicts, and bars how long it takes
BESIDE_THE_POINT = re.compile(
    r"Found unknown categories|try kernel='linear'|scale the features|to have little noise"
    r"|never tested by this cv|is fitted for every permutation and fold"
)


class Screen:
    """Standard output for answers, standard error for progress and asides."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        for stream in (sys.stdout, sys.stderr):
            # do not fail on a terminal that cannot show a character
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        self.quiet, self.silent, self.as_json = quiet, quiet or as_json, as_json
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        self.out = Console(file=sys.stdout, highlight=False, width=width)
        self.err = Console(file=sys.stderr, highlight=False)

    def show(self, *blocks: Block | None) -> None:
        """Print parts of an answer with an empty line before each; those that are None are left
        out.
        """
        for block in filter(None, blocks):
            said = Text(printable(render.as_text([block])))
            said.stylize("bold", 0, len(block.title))
            self.put(Text(), *said.split("\n", allow_blank=True))

    def remark(self, lines: Iterable[str]) -> None:
        self.put(*(Text(printable(f"· {line}"), "dim") for line in lines), indent=2)

    def warn(self, lines: Sequence[str]) -> None:
        mark = ("warning: ", "yellow")
        self.put(*([Text()] if lines else []))
        self.put(*(Text.assemble(mark, printable(line)) for line in lines))

    def put(self, *lines: Text, indent: int = 0) -> None:
        """Print lines, broken where the width ends; none ends in spaces."""
        for line in () if self.silent else lines:
            for part in line.wrap(self.out, self.out.width - indent):
                part.rstrip()
                part.pad_left(indent)
                self.out.print(part, soft_wrap=True)

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

    def aside(self, *lines: str) -> None:
        """Print remarks on standard error, separate from data on standard output."""
        for line in () if self.silent else lines:
            self.err.print(Text(printable(line), style="dim"), soft_wrap=True)

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

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show that `done` of `total` (0 if unknown) are done."""
        name, count = printable(what), f"{done}/{total}" if total else ""
        tasks = {task.description: task for task in self.progress.tasks}
        for other, task in tasks.items():
            if other != name and (task.finished or task.total is None):
                self.progress.remove_task(task.id)
        new = name not in tasks
        one = self.progress.add_task(name, total=None, count=count) if new else tasks[name].id
        self.progress.update(one, completed=done, total=total or None, count=count)


# ---- before the work -----------------------------------------------------------------------------


def announce(
    screen: Screen, command: str, design: Design, notes: Sequence[str], done: str = ""
) -> None:
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
    head = (f"fitonce {command}", "bold"), f"  {printable(name)}: {rows:,} rows"
    screen.put(Text.assemble(*head))
    screen.remark(lines)


def described_model(model: Any) -> str:
    words = render.model_name(model)
    return words if is_committee(model) else f"{words}, {render.kernel_text(model.kernel)}"


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
    test, said = answer.permutation, answer.permutation_statistic
    screen.show(
        render.scores(answer),
        None if others is None else other_models(others),
        None if test is None else render.significance(test, said, answer.score),
        render.confusion(answer.confusion, answer.classes, answer.repeats),
        render.calibration(answer),
        chosen(estimator, choice, answer) if choice else None,
        committee(estimator[-1]) if is_committee(final_step(estimator)) else None,
    )
    screen.warn(warnings)
    screen.put(Text())


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


def committee(model: Any) -> Block:
    head, *lines = model.describe(MOST_MEMBERS).splitlines()
    return Block(f"Committee: {head}", notes=[f"  {line}" for line in lines])


def null(test: PermutationTest) -> Block:
    """The observed score beside those with permuted labels."""
    name, found = render.score_name(next(iter(test.scores))), test.permutation_scores
    permuted = f"{np.mean(found):.3f} on average, {np.max(found):.3f} at most"
    return Block(notes=[f"observed {name} {test.score:.3f}; with permuted labels {permuted}"])


# ---- warnings ------------------------------------------------------------------------------------


def to_the_point(texts: Iterable[str]) -> list[str]:
    """Warnings of the library that help the user of a table."""
    return [TIMES.sub("", text) for text in texts if not BESIDE_THE_POINT.search(text)]


def warnings_of(
    texts: Iterable[str],
    answer: Assessment,
    settings: Mapping[str, Any],
    others: ModelComparison | None = None,
) -> list[str]:
    """What the user should know about the result: each kind of warning once, and warnings that
    follow from the scores. Settings that the program chose are not advised against.
    """
    plain = to_the_point(texts)
    if {settings.get(name, "tune") for name in ("gamma", "alpha")} == {"tune"}:
        plain = [ADVICE.sub("", text) for text in plain]
    kinds = kinds_of((UserWarning, text) for text in plain)
    found = [said[0] for _, said in kinds]
    counts = np.zeros((1, 1)) if answer.confusion is None else answer.confusion
    unseen = (counts.sum(axis=0) == 0) & (counts.sum(axis=1) > 0)
    never = [str(label) for label in np.asarray(answer.classes)[unseen]] if any(unseen) else []
    perfect = answer.score.value >= 1.0 - 1e-9 and answer.n_samples >= PERFECT_ROWS
    about_scores = {
        "every held-out row is predicted correctly. Check that no column was derived from the "
        "target or is known only after it.": perfect,
        f"the model never predicts {render.joined(never)}: its accuracy says little, balanced "
        "accuracy and AUC say more. --priors equal weighs all classes alike.": never,
    }
    found += [said for said, holds in about_scores.items() if holds]
    ours = "" if others is None else next(iter(others.scores))
    better = others.clearly_better(ours) if others is not None else None
    if others is not None and better is not None:
        mine, theirs = (others.scores[name].value for name in (ours, better))
        found.append(
            f"{better}: clearly better on the same rows ({theirs:.3f} versus {mine:.3f}). "
            "A kernel model does not suit this table as it is."
        )
    return found
