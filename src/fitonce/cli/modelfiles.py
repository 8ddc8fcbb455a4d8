"""Commands on a model file: predict, export, report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..core.doubt import caught_warnings
from ..crossval.confounds import call
from ..io.onnx import measured_error, to_onnx
from ..io.saving import load, read_metadata
from .bounds import bounds, check_interval
from .columns import TableDesign, check_columns, design
from .confounds import confounds_like
from .contest import fit
from .errors import UserError
from .features import Feature, features_of
from .options import Check, Reading, Request
from .screen import Screen
from .steps import assessed, assessed_rows, fit_all, threads_for, write_page
from .tables import Table, beside, check_output, write_table
from .values import NUMBERS, examples, text_of


def predict_rows(
    screen: Screen,
    model: str,
    rows: str,
    reading: Reading,
    keep: Sequence[str] | None,
    out: str | None,
    interval: float | None = None,
    trained_on: str | None = None,
) -> None:
    """Predict new rows: labels and probabilities (or numbers), as CSV on standard output or in a
    file.

    The output also contains the columns to keep: those named by the user, or else the identifier
    columns of the training table.
    """
    check_interval(interval, trained_on)
    if out is not None:
        check_output(out, model, rows, trained_on)
    with screen.bars() as bars:
        bars(0, 0, f"reading {model}")
        estimator = load(model)
        features, known = columns_of(model, estimator)
        bars(0, 0, f"reading {rows}")
        table = reading.table(rows, [feature.source for feature in features])
        check_columns(table, keep or (), "keep")
        kept = known.get("identifiers", []) if keep is None else keep
        kept = [name for name in kept if name in table.frame.columns]
        X, notes = features_of(table, features)
        bars(0, 0, "predicting")
        C = confounds_like(table.frame, known.get("confounds", ()), table.name)
        predictions = _predictions(estimator, X, C)
    for note in [*notes, *_unknown_categories(estimator, X)]:
        screen.aside(note)
    target = known.get("target")
    if target is not None and target in table.frame.columns:
        screen.aside(_agreement(estimator, table.frame[target], predictions[0]))
    if interval is not None and C is not None:
        raise UserError(
            "--interval is not available for models with confounds: leave it out, or fit without "
            "--confound."
        )
    if interval is not None and trained_on is not None:
        refit = partial(_fit_again, screen, model, trained_on)
        predictions += bounds(estimator, refit, X, interval)
    screen.files(write_table(pl.DataFrame([*table.frame.select(kept), *predictions]), out))


def export_model(screen: Screen, model: str, out: str | None, rows: str | None, dtype: str) -> None:
    """Export a model file to ONNX; the error is measured on the given rows, or on the model's
    own.
    """
    path = beside(model, out, ".onnx")
    check_output(path, model, rows)
    estimator = load(model)
    X = None
    if rows is not None:
        X, _ = features_of(Reading().table(rows), columns_of(model, estimator)[0])
    error = f"{measured_error(to_onnx(estimator, X, path=path, dtype=dtype)):.3g}"
    screen.show(f"largest relative difference from the model: {error}")
    said = {"model": model, "file": str(path), "error": error, "dtype": dtype}
    screen.json({"command": "export", **said})
    screen.files({"graph": str(path)})


def report_page(
    screen: Screen,
    model: str,
    request: Request,
    reading: Reading,
    check: Check,
    out: str | None,
    include_data: bool,
) -> None:
    """Write the HTML report of a model file and the table it was fitted on."""
    path = beside(model, out, ".html")
    check_output(path, model, request.table)
    estimator = load(model)
    with screen.bars() as bars:
        bars(0, 0, f"reading {request.table}")
        table, parts = own_rows(
            model, estimator, reading, request.table, request.group, request.weight
        )
    judged, _ = assessed_rows(parts, check.random_state)
    with screen.bars() as bars, threads_for(parts):
        answer = assessed(estimator, judged, check)
        bars(0, 0, "refitting for the report")
        with caught_warnings():
            fit(estimator, judged)
        bars(0, 0, "writing the report")
        name = Path(table.name).name
        write_page(path, estimator, parts, judged, answer, name, include_data=include_data)
    screen.json({"command": "report", "page": str(path)})
    screen.files({"page": str(path)})


def _fit_again(screen: Screen, model: str, name: str, estimator: Any) -> TableDesign:
    """Fit a loaded model again on its own table, as `fit` did."""
    _, parts = own_rows(model, estimator, Reading(), name)
    with screen.bars() as bars, threads_for(parts):
        bars(0, 0, "refitting for the intervals")
        fit_all(estimator, parts, assessed_rows(parts, 0)[0])
    return parts


def own_rows(
    model: str,
    estimator: Any,
    reading: Reading,
    name: str,
    group: str | None = None,
    weight: str | None = None,
) -> tuple[Table, TableDesign]:
    """The table that a model file was fitted on, with its columns used as they were then."""
    features, known = columns_of(model, estimator)
    if "target" not in known:
        raise UserError(
            f"{model} does not name its target: this command needs a model written by `fitonce "
            "fit`."
        )
    table = reading.table(name, [known["target"]])
    parts = design(
        table,
        known["target"],
        task=known["task"],
        group=group or known.get("group"),
        weight=weight or known.get("weight"),
        confound=[column["name"] for column in known.get("confounds", ())],
        categorical=[c["name"] for c in known.get("confounds", ()) if c["category"]],
        features=features,
    )
    return table, parts


def columns_of(model: str, estimator: Any) -> tuple[list[Feature], dict[str, Any]]:
    """The features a model file was fitted on, from its metadata or, for models saved from Python,
    from its feature names; and everything the file stores about its table.
    """
    known = read_metadata(model)
    if "columns" in known:
        return [Feature.remembered(column) for column in known["columns"]], known
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise UserError(
            f"{model} does not contain the names of its columns: it was saved from Python without "
            "column names. Predict from Python, or fit it on a table with column names."
        )
    return [Feature(name, NUMBERS, name) for name in map(str, names)], {}


def _unknown_categories(estimator: Any, X: pl.DataFrame) -> Iterator[str]:
    """Remarks about values that are none of the model's categories.

    Works only for pipelines made by `fit`, whose steps are known.
    """
    steps = getattr(estimator, "named_steps", {})
    encoder = getattr(steps.get("columns"), "named_transformers_", {}).get("categories")
    if encoder is None:
        return
    text = [values for values in X if values.dtype == pl.String]
    learned = zip(text, encoder.categories_, encoder.infrequent_categories_, strict=True)
    for values, known, rare in learned:
        others = values.filter(~values.is_in(known.tolist()))
        if others.len():
            taken = "as none of its values" if rare is None else "as one of its rare values"
            yield (
                f"{others.len():,} values of {values.name!r} were not in the training table "
                f"({examples(others)}): they count {taken}"
            )


def _predictions(estimator: Any, X: pl.DataFrame, C: pl.DataFrame | None) -> list[pl.Series]:
    predictions = [pl.Series("prediction", np.asarray(call(estimator, "predict", X, C)).tolist())]
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(call(estimator, "predict_proba", X, C)).T
        predictions += [
            pl.Series(f"probability_{label}", values)
            for label, values in zip(estimator.classes_.tolist(), probabilities, strict=True)
        ]
    return predictions


def _agreement(estimator: Any, truth: pl.Series, predicted: pl.Series) -> str:
    """How well the predictions agree with the target, if the new rows have it."""
    if hasattr(estimator, "classes_"):
        right = (text_of(truth) == predicted.cast(pl.String)).drop_nulls()
        agree = f"{int(right.sum()):,} of {right.len():,} predictions agree"
        said = f"{agree} with the column {truth.name!r}"
    else:
        error: Any = (truth.cast(pl.Float64, strict=False) - predicted).abs().mean()
        said = f"mean absolute error against the column {truth.name!r}: {error:.4g}"
    return f"{said} (too optimistic if the model was fitted on these rows)"
