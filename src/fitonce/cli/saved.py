"""What the commands on a model file do: predict, export, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..io.onnx import measured_error, to_onnx
from ..io.saving import load, read_metadata
from .columns import check_columns, design, features_of
from .errors import UserError
from .options import Check, Reading, Request
from .screen import Screen
from .tables import beside, check_folder, write_table
from .values import CATEGORY, NUMBERS, examples, text_of
from .work import assessed, assessed_rows, fit_all, threads_for, write_page


def predict_rows(
    screen: Screen, model: str, rows: str, reading: Reading, keep: Sequence[str], out: str | None
) -> None:
    """Labels and probabilities (or numbers) of new rows, as CSV on standard output or in a file."""
    if out is not None:
        check_folder(Path(out).parent)
    estimator = load(model)
    kinds, target = columns_of(model, estimator)
    table = reading.table(rows, kinds)
    check_columns(table, keep, "keep")
    X, notes = features_of(table, kinds)
    for note in [*notes, *_unknown_categories(estimator, X)]:
        screen.aside(note)
    predictions = _predictions(estimator, X)
    if target is not None and target in table.frame.columns:
        screen.aside(_agreement(estimator, table.frame[target], predictions[0]))
    frame = pl.DataFrame([*(table.frame[name] for name in keep), *predictions])
    screen.paths(write_table(frame, out))


def export_model(screen: Screen, model: str, out: str | None, rows: str | None, dtype: str) -> None:
    """A model file as ONNX, with the error measured on rows, if given, else on the model's own."""
    path = beside(model, out, ".onnx")
    estimator = load(model)
    X = None
    if rows is not None:
        X, _ = features_of(Reading().table(rows), columns_of(model, estimator)[0])
    error = f"{measured_error(to_onnx(estimator, X, path=path, dtype=dtype)):.3g}"
    screen.show(f"largest difference from the model, relative: {error}")
    said = {"model": model, "file": str(path), "error": error, "dtype": dtype}
    screen.json({"command": "export", **said})
    screen.paths([str(path)])


def report_page(
    screen: Screen,
    model: str,
    request: Request,
    reading: Reading,
    check: Check,
    out: str | None,
    include_data: bool,
) -> None:
    """The HTML page of a model file and the table it was fitted on."""
    path = beside(model, out, ".html")
    estimator, known = load(model), read_metadata(model)
    if "target" not in known:
        raise UserError(
            f"{model} does not name its target: pages are for models that `fitonce fit` wrote."
        )
    table = reading.table(request.table, [known["target"]])
    kinds, _ = columns_of(model, estimator)
    group, weight = request.group or known.get("group"), request.weight or known.get("weight")
    used = {*kinds, known["target"], group, weight}
    parts = design(
        table,
        known["target"],
        task=known["task"],
        group=group,
        weight=weight,
        drop=[name for name in table.frame.columns if name not in used],
        keep=list(kinds),
        categorical=[name for name, kind in kinds.items() if kind == CATEGORY],
    )
    if parts.X.columns != list(kinds):
        raise UserError(f"{request.table} does not have the columns that {model} was fitted on.")
    with screen.bars() as bars, threads_for(parts):
        judged, _ = assessed_rows(parts, check.random_state)
        answer = assessed(estimator, judged, check)
        bars(0, 0, "fit again for the page")
        fit_all(estimator, parts, judged)
    title = Path(table.name).name
    write_page(path, estimator, parts, answer, title, include_data=include_data)
    screen.json({"command": "report", "page": str(path)})
    screen.paths([str(path)])


def columns_of(model: str, estimator: Any) -> tuple[dict[str, str], str | None]:
    """The columns a model file was fitted on and what they hold, from its metadata or, for models
    saved from Python, its feature names; and its target.
    """
    known = read_metadata(model)
    if "columns" in known:
        return {str(c["name"]): str(c["kind"]) for c in known["columns"]}, known.get("target")
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise UserError(
            f"{model} does not say which columns it was fitted on: it was saved from Python "
            "without column names. Predict there, or fit it on a table with names."
        )
    return dict.fromkeys(map(str, names), NUMBERS), None


def _unknown_categories(estimator: Any, X: pl.DataFrame) -> list[str]:
    """A word about values that the categories of the model's rows do not have.

    Only pipelines of `fit` are known from the inside.
    """
    steps = getattr(estimator, "named_steps", {})
    encoder = getattr(steps.get("columns"), "named_transformers_", {}).get("categories")
    if encoder is None:
        return []
    said = []
    text = [values for values in X if values.dtype == pl.String]
    learned = zip(text, encoder.categories_, encoder.infrequent_categories_, strict=True)
    for values, known, rare in learned:
        others = values.filter(~values.is_in(known.tolist()))
        if others.len():
            taken = "as none of its values" if rare is None else "with its rare values"
            said.append(
                f"{others.len():,} values of {values.name!r} did not occur when the model was "
                f"fitted ({examples(others)}): they count {taken}"
            )
    return said


def _predictions(estimator: Any, X: pl.DataFrame) -> list[pl.Series]:
    predictions = [pl.Series("prediction", np.asarray(estimator.predict(X)).tolist())]
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(X)).T
        predictions += [
            pl.Series(f"probability_{label}", values)
            for label, values in zip(estimator.classes_.tolist(), probabilities, strict=True)
        ]
    return predictions


def _agreement(estimator: Any, truth: pl.Series, predicted: pl.Series) -> str:
    """How well the predictions agree with a target that the rows happen to have."""
    if hasattr(estimator, "classes_"):
        right = (text_of(truth) == predicted.cast(pl.String)).drop_nulls()
        agree = f"{int(right.sum()):,} of {right.len():,} predictions agree"
        said = f"{agree} with the column {truth.name!r}"
    else:
        error: Any = (truth.cast(pl.Float64, strict=False) - predicted).abs().mean()
        said = f"mean absolute error beside the column {truth.name!r}: {error:.4g}"
    return f"{said} (no honest figure if the model was fitted on these rows)"
