"""Results in words: the one place that turns them into sentences, tables and numbers.

A result becomes `Block`s, each with a title, a table and notes. `as_text` and `as_html` show them
in a terminal and in a notebook; the command line and the report show the same blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..kernels import families

SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "r2": "R²",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
}
MODELS = {
    "KernelFisherDiscriminant": "kernel Fisher discriminant",
    "LeastSquaresSVC": "least-squares support vector machine",
    "KernelRidge": "kernel ridge regression",
    "KernelCommitteeClassifier": "committee of kernel Fisher discriminants",
    "KernelCommitteeRegressor": "committee of kernel ridge models",
}
LOSSES = ("log_loss", "brier")  # of which the name does not say so, as that of an error does
BASELINES = {"classification": "majority class", "regression": "the mean"}
EXCHANGED = {
    "rows": "between rows",
    "within": "within groups",
    "whole": "between whole groups",
    "whole-unequal": "between whole groups of any size",
    "sign": "within pairs",
    "shift": "by shifts",
}
MODES = {
    "cosets": "with their folds",
    "within-folds": "inside each fold",
    "resplit": "with new folds",
    "free": "across folds",
}
MATRIX_UP_TO = 12  # classes of a confusion matrix; of more, the most common confusions are listed
MOST_CONFUSIONS = 8
BELOW = 0.05  # a difference of scores that is clear where there is no interval


@dataclass(frozen=True)
class Block:
    """A part of an answer: a title, a table below its head, and notes of one line each."""

    title: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()


def as_text(blocks: Iterable[Block]) -> str:
    """Blocks with empty lines between them and columns aligned."""
    parts = ([*filter(None, [block.title]), *_aligned(block), *block.notes] for block in blocks)
    return "\n\n".join(map("\n".join, parts))


def _aligned(block: Block) -> list[str]:
    table = [block.head, *block.rows] if block.rows else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    padded = ((c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table)
    return ["  ".join(cells).rstrip() for cells in padded]


def as_html(blocks: Iterable[Block]) -> str:
    """The same for a notebook."""
    return f"<div>{''.join(map(_html, blocks))}</div>"


def _html(block: Block) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in block.head)
    body = "".join(
        f'<tr><th style="text-align: left">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in block.rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    notes = "".join(f"<div>{escape(note)}</div>" for note in block.notes)
    return f"<div><strong>{escape(block.title)}</strong></div>{table}{notes}"


# ---- results -------------------------------------------------------------------------------------


def assessment(answer: Any) -> list[Block]:
    """An assessment: scores beside the baseline, the permutation test, warnings."""
    test = answer.permutation
    blocks = [scores(answer)]
    if test is not None:
        blocks.append(significance(test, answer.permutation_statistic, answer.score))
    if answer.warnings:
        blocks.append(warned(answer.warnings))
    return blocks


def warned(warnings: Iterable[str]) -> Block:
    return Block(notes=[f"warning: {text}" for text in warnings])


def scores(answer: Any) -> Block:
    """Every score beside that of the baseline; the main score with its interval comes first."""
    rows = [(SCORES[answer.score_name], str(answer.score), str(answer.baseline))]
    rows += [
        (
            SCORES.get(name, name) + (" (lower is better)" if name in LOSSES else ""),
            str(score),
            number(answer.baseline_metrics.get(name, np.nan)),
        )
        for name, score in answer.intervals.items()
        if name != answer.score_name
    ]
    nested = "" if answer.route.name == "prefit" else "nested cross-validation, "
    title = f"Held-out scores of {answer.n_samples:,} rows: {nested}{answer.cv}"
    return Block(title, ("score", "model", baseline_name(answer)), rows, score_notes(answer))


def score_notes(answer: Any) -> list[str]:
    """How the scores and their interval were computed."""
    interval = f"[low, high]: {100 * answer.level:g} % interval, {answer.score.method}"
    confounds = f"confounds: {answer.confounds}" if answer.confounds else ""
    said = answer.score.method if np.isnan(answer.score.low) else interval
    return [note for note in (said, answer.auc_method, confounds) if note]


def baseline_name(answer: Any) -> str:
    return f"baseline ({BASELINES[answer.task]})"


def significance(test: Any, statistic: str, reported: Any = None) -> Block:
    """The permutation test: the p-value of the main score, and what was tested; `reported` is the
    score of the assessment.
    """
    name, observed = next(iter(test.scores.items()))
    ps = {n: p_value(p) for n, p in test.pvalues.items() if np.ndim(p) == 0}
    said = (f"{SCORES.get(n, n)}: p = {ps[n]}" for n in sorted(ps, key=name.__ne__))
    how = f"{relabellings(test)}; labels permuted {exchanged(test)}"
    notes = [how, f"test statistic: {statistic}: {number(float(observed))}"]
    about = (about_tested, about_small) if reported is not None else ()
    notes += filter(None, [words(test, reported) for words in about])
    return Block(f"Better than chance? {'; '.join(said)}", notes=notes)


def about_small(test: Any, reported: Any) -> str:
    """Why p can be small while the interval of R² holds zero; empty elsewhere."""
    small = test.pvalue <= 0.05 and reported.low <= 0.0
    if not small or next(iter(test.scores)) != "r2":
        return ""
    return (
        f"p = {p_value(test.pvalue)} and the interval {reported} can both be true: p asks whether "
        "the columns say anything about the target, the interval how well this model would predict "
        "new rows, which depends on the rows that happened to be drawn."
    )


def about_tested(test: Any, reported: Any) -> str:
    """That p speaks of another score, where that lies below the interval of the reported one, or,
    without an interval, `BELOW` or more below it; empty elsewhere.
    """
    tested = float(next(iter(test.scores.values())))
    low = reported.value - BELOW if np.isnan(reported.low) else reported.low
    if tested >= low:
        return ""
    return (
        f"p speaks of what was tested, which scores {number(tested)}, clearly below the reported "
        f"{number(reported.value)}: evidence for the reported score may be stronger."
    )


def confusion(
    counts: np.ndarray | None, classes: Iterable[Any] | None, repeats: int = 1
) -> Block | None:
    """The confusion matrix, or the most common confusions of many classes; None for regression."""
    if counts is None or classes is None:
        return None
    names, first = [shortened(label) for label in classes], first_of(repeats)
    if len(names) <= MATRIX_UP_TO:
        title = f"Confusion matrix: true class by row, held-out prediction by column{first}"
        recall = np.diag(counts) / np.where(counts.sum(axis=1) > 0, counts.sum(axis=1), np.nan)
        rows = [
            (name, *map(_count, row), number(share))
            for name, row, share in zip(names, counts, recall, strict=True)
        ]
        return Block(title, ("", *names, "recall"), rows)
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[: min(MOST_CONFUSIONS, np.sum(wrong > 0))]
    places = [divmod(int(place), len(names)) for place in order]
    rows = [(names[i], names[j], _count(wrong[i, j])) for i, j in places]
    if not rows:
        return Block(f"No held-out row was misclassified{first}.")
    title = f"Most common confusions among {len(names)} classes{first}"
    return Block(title, ("true class", "predicted as", "rows"), rows)


def _count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def calibration(answer: Any) -> Block | None:
    """The calibration error with a few examples; None without probabilities."""
    curve = answer.calibration
    if curve is None:
        return None
    picked = sorted({0, len(curve.count) // 2, len(curve.count) - 1})
    pairs = [(curve.predicted[i], curve.observed[i]) for i in picked]
    examples = (f"predicted {p:.2f}, observed {q:.2f}" for p, q in pairs)
    title = f"Calibration: expected error {curve.error:.3f}{first_of(answer.repeats)}"
    return Block(title, notes=[f"{curve.of}: {'; '.join(examples)}"])


def chosen(choice: Mapping[str, Any], answer: Any, tuned: Sequence[str]) -> Block:
    """The settings chosen on all rows, and those chosen in the training sets of the folds."""
    said = ", ".join(
        f"{name} {chosen_value(value)}"
        for name, value in choice.items()
        if (name != "penalty" or name in tuned) and "__" not in name
    )
    found = {name: [fold[name] for fold in answer.choices if name in fold] for name in tuned}
    folds = {name: each for name, each in found.items() if each and not isinstance(each[0], list)}
    notes = [
        f"{name} in the folds{' that have one' * (len(values) < len(answer.choices))}: "
        + spread(values)
        for name, values in folds.items()
    ]
    return Block(f"Chosen on all rows: {said}", notes=notes)


def columns(found: Any, most: int | None = None) -> Block:
    """What prediction loses without each column, the most important first."""
    order = np.argsort(-found.loss, kind="stable")[:most]
    rows = [
        (
            found.names[j],
            f"{found.loss[j]:+.3f} [{found.low[j]:+.3f}, {found.high[j]:+.3f}]",
            p_value(found.pvalues[j]),
            f"{found.change[j]:+.3f}",
        )
        for j in order
    ]
    labels = found.score_name == "accuracy"
    head = ("left out", "log-loss rises by" if labels else "R² falls by", "p", "accuracy falls by")
    notes = [
        f"[low, high]: {100 * found.level:g} % interval; p: of no loss, corrected for "
        f"{len(found.names)} columns"
    ]
    rest = len(found.names) - len(rows)
    if rest:
        notes.append(f"{rest} further column{' matters' if rest == 1 else 's matter'} less.")
    width = 4 if labels else 3
    score = f"{SCORES[found.score_name]} of held-out rows {found.score:.3f}"
    title = f"{score}, with the settings of this model kept; without a column:"
    return Block(title, head[:width], [row[:width] for row in rows], notes)


def comparison(result: Any) -> list[Block]:
    """A comparison of models: their scores, and all differences."""
    name, pairs = score_name(result.score_name), result.differences
    title = f"{len(result.scores)} models on the same held-out rows of {result.n_samples:,}: "
    rows = [(model, str(score)) for model, score in result.scores.items()]
    differences = [(f"{d.first} - {d.second}", d.estimate, p_value(d.pvalue)) for d in pairs]
    notes = [
        f"[low, high]: {100 * result.level:g} % interval, {result.method}",
        "p: of the hypothesis that two ways of making a model are equally good",
    ]
    if len(pairs) > 1:
        notes[1] += f"; corrected for the {len(pairs)} differences"
    if result.refitted:
        notes.append(f"refitted on every training set: {joined(result.refitted)}")
    return [
        Block(title + result.cv, ("model", name), rows),
        Block("Differences on the same splits", ("first - second", name, "p"), differences, notes),
    ]


# ---- words ---------------------------------------------------------------------------------------


def score_name(name: Any) -> str:
    if not isinstance(name, str):
        return "user-defined criterion"
    return SCORES.get(name, {"auc": "AUC", "error": "error rate"}.get(name, name.replace("_", " ")))


def model_name(model: Any) -> str:
    return MODELS.get(type(model).__name__, type(model).__name__)


def count(number: int) -> str:
    return f"{int(number):,}"


def percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%" if np.isfinite(share) else "–"


def score_text(value: float, share: bool) -> str:
    """The main score as text: an accuracy, which is a share, or R²."""
    return percent(value) if share else number(value)


def interval_text(score: Any, share: bool) -> str:
    """The interval of an `Estimate` of the main score; empty if it has none."""
    if not np.isfinite(score.low):
        return ""
    low, high = (score_text(end, share) for end in (score.low, score.high))
    return f"{100 * score.level:g}\u00a0% interval {low} to {high}"


def number(value: float) -> str:
    """A score with three decimals; a dash if there is none."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.4g}"


def p_value(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") if value >= 1e-4 else f"{value:.1g}"


def chosen_value(value: Any) -> str:
    """A parameter: a word, a number, or the range if there is one per feature."""
    if isinstance(value, str):
        return value
    if np.ndim(value) > 0:
        return f"{np.min(value):.3g} to {np.max(value):.3g} by feature"
    return f"{float(value):.3g}"


def setting(value: Any, values: bool = True) -> str:
    """The value of a parameter, in full if it is short. Without `values`, the contents of arrays,
    lists and other objects are not shown, since they may be data.
    """
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if not values and not isinstance(value, (str, bool, int, type(None))):
        return _described(value)
    if isinstance(value, np.ndarray):
        return shortened(", ".join(f"{number:.4g}" for number in value.reshape(-1)), 60)
    return shortened(value if isinstance(value, str) else repr(value), 120)


def _described(value: Any) -> str:
    if isinstance(value, dict):
        inside = [f"{shortened(k, 40)}={setting(v, values=False)}" for k, v in value.items()]
        return f"{{{', '.join(inside)}}}"
    if hasattr(value, "shape"):
        return f"array of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    return shortened(getattr(value, "__name__", type(value).__name__))


def kernel_text(kernel: Any) -> str:
    """The name of a kernel, or a list of those to choose from."""
    found = families(kernel)
    if not isinstance(found, tuple):
        return f"{found} kernel"
    return f"the best of the kernels {joined(found)}"


def spread(values: Sequence[Any]) -> str:
    """Values with how often each occurred, or their range if there are many."""
    counts = Counter(chosen_value(value) for value in values)
    if len(counts) == 1:
        return f"{next(iter(counts))}{f' in all {len(values)}' if len(values) > 1 else ''}"
    if len(counts) > 4 and not any(isinstance(value, str) for value in values):
        low, middle, high = (chosen_value(f(values)) for f in (np.min, np.median, np.max))
        return f"{low} to {high}, median {middle}"
    return ", ".join(f"{value} ({count} of {len(values)})" for value, count in counts.most_common())


def relabellings(test: Any) -> str:
    """The number of labelings in a permutation test, and whether p could be smaller."""
    done = test.n_permutations_done
    count = f"all {done + 1:,} labelings" if test.exact else f"{done:,} permutations"
    smallest = test.pvalue <= 1.0 / (done + 1)
    return f"{count}, the smallest possible p" if smallest else count


def exchanged(test: Any) -> str:
    return f"{EXCHANGED.get(test.exchange, test.exchange)}, {MODES[test.mode]}"


def first_of(repeats: int) -> str:
    """A note for results by row, which come from the first repeat; scores are means over
    repeats.
    """
    return f" (first of {repeats} repeats)" if repeats > 1 else ""


def joined(names: Sequence[Any], most: int = 6) -> str:
    """Names joined for a sentence, with the number of further ones."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return " and ".join(filter(None, [", ".join(map(str, shown[:-1])), *map(str, shown[-1:])]))


def shortened(name: Any, limit: int = 80) -> str:
    """A name as one line of text; control characters and lone surrogates become question marks."""
    text = "".join(
        letter if letter.isprintable() or letter == " " else "\ufffd" for letter in str(name)
    )
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"
