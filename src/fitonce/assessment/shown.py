"""An assessment as a short text, and as HTML for a notebook: scores and baseline, the p-value,
warnings.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from .words import BASELINES, SCORES, p_value, relabellings

LOWER_IS_BETTER = ("log_loss", "brier", "mae", "rmse")


def score_rows(answer: Any) -> list[tuple[str, str, str]]:
    """Name, value and baseline of every score; the main score with its interval comes first."""
    headline = SCORES[answer.score_name], str(answer.score), str(answer.baseline)
    others = [
        (
            SCORES[name] + (" (lower is better)" if name in LOWER_IS_BETTER else ""),
            _digits(name, value),
            _digits(name, answer.baseline_metrics.get(name, np.nan)),
        )
        for name, value in answer.metrics.items()
        if name != answer.score_name
    ]
    return [headline, *others]


def _digits(name: str, value: float) -> str:
    """Three decimals; four digits for scores in units of the target."""
    if np.isnan(value):
        return "–"
    return (
        f"{value:.4g}"
        if name in ("mae", "rmse")
        else f"{value + 0.0:.3f}".replace("-0.000", "0.000")
    )


def baseline_name(answer: Any) -> str:
    return f"baseline ({BASELINES[answer.task]})"


def chance_line(answer: Any) -> str | None:
    """The permutation test in a sentence."""
    test = answer.permutation
    if test is None:
        return None
    return f"p = {p_value(float(test.pvalue))} (permutation test, {relabellings(test)})"


def _heading(answer: Any) -> str:
    return f"Held-out scores of {answer.n_samples:,} rows: nested cross-validation, {answer.cv}"


def _interval(answer: Any) -> str:
    if np.isnan(answer.score.low):
        return str(answer.score.method)
    return f"[low, high]: {100 * answer.level:g} % interval, {answer.score.method}"


def confounds_line(answer: Any) -> str | None:
    """The confounds and how they were used."""
    return f"confounds: {answer.confounds}" if answer.confounds else None


def as_text(answer: Any) -> str:
    """A heading, a table, and a line each for the interval, the p-value and every warning."""
    table = [("score", "model", baseline_name(answer)), *score_rows(answer)]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    further = [
        _interval(answer),
        answer.auc_method,
        chance_line(answer),
        confounds_line(answer),
    ]
    told = [f"warning: {said}" for said in answer.warnings]
    return "\n".join([_heading(answer), "", *lines, "", *filter(None, further), *told])


def as_html(answer: Any) -> str:
    """The same as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", "model", baseline_name(answer)))
    body = "".join(
        f'<tr><th style="text-align: left">{escape(name)}</th><td>{escape(value)}</td>'
        f"<td>{escape(baseline)}</td></tr>"
        for name, value, baseline in score_rows(answer)
    )
    doubts = [f"<strong>Warning:</strong> {escape(said)}" for said in answer.warnings]
    after = chance_line(answer), confounds_line(answer)
    lines = _interval(answer), answer.auc_method, *after
    further = [escape(line) for line in lines if line]
    notes = "".join(f"<div>{line}</div>" for line in [*further, *doubts])
    return (
        f"<div><div><strong>{escape(_heading(answer))}</strong></div>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"
    )
