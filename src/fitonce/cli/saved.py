"""The commands that take a model file."""

from __future__ import annotations

import io
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.text import Text

from ..assessment import assess, choice_of
from ..assessment.assess import warned
from ..assessment.folds import fixed
from ..core.atomic import is_stream, write_atomically
from ..core.numerical_warnings import caught_warnings
from ..crossval.confounds import call
from ..io.saving import load, read_metadata
from . import show
from .columns import Design, check_columns, design, features_of
from .model import about_new_rows, assessed_rows, fit
from .run import (
    Given,
    assessed,
    beside,
    check_output,
    make_folder,
    screen_of,
    taken,
    threads_for,
    with_permutations,
    write_page,
)
from .table import ARROW, PARQUET, read_table
from .values import NUMBER, Feature, confounds_of
from .words import UserError, printable, refuse

TABLES = (*PARQUET, *ARROW, ".csv", ".tsv", ".txt", "")  # endings of tables that can be written


def predict_rows(given: Given) -> None:
    """Predict new rows: labels and probabilities (or numbers), as CSV on standard output or in a
    file.

    The output also contains the columns to keep: those named by the user, or else the identifier
    columns of the training table.
    """
    screen, model, keep = screen_of(given), given["model"], given["keep"]
    out = given["out"]
    if out is not None:
        check_output(out, model, given["rows"])
        unknown = not is_stream(out) and Path(out).suffix.lower() not in TABLES
        refuse((unknown, f"--out must end in .csv, .tsv, .parquet or .arrow, got {out} instead."))
    with screen.working(f"reading {model}") as bars:
        estimator = load(model)
        features, known = columns_of(model, estimator)
        bars(0, 0, f"reading {given['rows']}")
        expected = [feature.source for feature in features]
        table = read_table(given["rows"], expected=expected, **taken(read_table, given))
        check_columns(table, keep or (), "keep")
        kept = keep or known.get("identifiers", [])
        kept = [name for name in kept if name in table.frame.columns]
        X, notes = features_of(table, features)
        bars(0, 0, "predicting")
        adjusting = [Feature(**feature) for feature in known.get("confounds", ())]
        predictions = _predictions(estimator, X, confounds_of(table, adjusting))
        if given["interval"] is not None:
            predictions += _intervals(estimator, known, X, given["interval"])
    if known.get("log_target"):
        predictions = [values.exp() for values in predictions]
    target = known.get("target")
    scored = f"the rows have the target {target!r}: `fitonce validate` scores the model on them"
    again = [scored] if target in table.frame.columns else []
    screen.aside(*notes, *about_new_rows(estimator, X), *again)
    result = pl.DataFrame([*table.frame.select(kept), *predictions])
    screen.finish({"files": write_table(result, out)})


def write_table(frame: pl.DataFrame, path: str | None) -> dict[str, str]:
    """Write a table in the format given by the ending of the name, completely or not at all; to
    standard output without a name. Returns the files written.
    """
    if path is None:
        text = frame.write_csv()
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
        return {}
    content = io.BytesIO()
    writers = dict.fromkeys(PARQUET, frame.write_parquet) | dict.fromkeys(ARROW, frame.write_ipc)
    as_text = partial(frame.write_csv, separator="\t" if path.endswith(".tsv") else ",")
    writers.get(Path(path).suffix.lower(), as_text)(content)
    make_folder(path)
    write_atomically(path, content.getvalue())
    return {"table": path}


def columns_of(model: str, estimator: Any) -> tuple[list[Feature], Given]:
    """The features a model file was fitted on, from its metadata or, for models saved from Python,
    from its feature names; and everything the file stores about its table.
    """
    known = read_metadata(model)
    if "columns" in known:
        return [Feature(**column) for column in known["columns"]], known
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise UserError(
            f"{model} does not contain the names of its columns: it was saved from Python without "
            "column names. Predict from Python, or fit it on a table with column names."
        )
    return [Feature(name, NUMBER, name) for name in map(str, names)], {}


def _predictions(estimator: Any, X: pl.DataFrame, C: pl.DataFrame | None) -> list[pl.Series]:
    predictions = [pl.Series("prediction", np.asarray(call(estimator, "predict", X, C)).tolist())]
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(call(estimator, "predict_proba", X, C)).T
        predictions += [
            pl.Series(f"probability_{label}", values)
            for label, values in zip(estimator.classes_.tolist(), probabilities, strict=True)
        ]
    return predictions


def _intervals(estimator: Any, known: Given, X: pl.DataFrame, confidence: float) -> list[pl.Series]:
    """Bounds of the prediction, or the set of classes, by the models without each training row."""
    model, rows = estimator[-1], known.get("rows")
    if rows is None:
        raise UserError(
            "--interval compares new rows with the training rows, which this model file does not "
            "have: committees, models with landmarks (above 2,000 rows) or with confounds, and "
            "models saved from Python come without them."
        )
    given = {name: np.array(v) for name, v in rows.items() if v is not None and name != "y"}
    whole = fixed(model, choice_of(model)).fit(model.X_fit_, np.array(rows["y"]), **given)
    Z = estimator[:-1].transform(X)
    share = f"{100 * confidence:g}"
    if not hasattr(model, "classes_"):
        low, high = whole.predict_interval(Z, confidence).T
        return [pl.Series(f"lower_{share}", low), pl.Series(f"upper_{share}", high)]
    sets = whole.predict_set(Z, confidence, per_class=True)
    names = np.array([str(label) for label in model.classes_.tolist()], dtype=object)
    return [pl.Series(f"set_{share}", [" | ".join(names[inside]) for inside in sets])]


def export_model(given: Given) -> None:
    """Export a model file to ONNX; the error is measured on the given rows, or on the model's
    own.
    """
    from ..io.onnx import measured_error, to_onnx

    screen, model, rows = screen_of(given), given["model"], given["rows"]
    path = beside(model, given["out"], ".onnx")
    check_output(path, model, rows)
    estimator = load(model)
    X = None
    if rows is not None:
        X, _ = features_of(read_table(rows), columns_of(model, estimator)[0])
    graph = to_onnx(estimator, X, path=path, dtype=given["dtype"])
    error = f"{measured_error(graph):.3g}"
    screen.put(Text(f"largest relative difference from the model: {error}"))
    said = {"model": model, "file": str(path), "error": error, "dtype": given["dtype"]}
    screen.finish({"command": "export", **said, "files": {"graph": str(path)}})


def report_page(given: Given) -> None:
    """Write the HTML report of a model file and the table it was fitted on."""
    screen, given = screen_of(given), with_permutations(given)
    model, path = given["model"], beside(given["model"], given["out"], ".html")
    check_output(path, model, given["table"])
    estimator = load(model)
    with screen.working(f"reading {given['table']}"):
        parts = own_rows(estimator, given)
    judged, _ = assessed_rows(parts, given["random_state"])
    with screen.working() as bars, threads_for(parts):
        answer = assessed(estimator, judged, given)
        bars(0, 0, "refitting for the report")
        with caught_warnings():
            fit(estimator, judged)
        bars(0, 0, "writing the report")
        write_page(path, estimator, parts, judged, answer, include_data=given["data"])
    screen.finish({"command": "report", "page": str(path), "files": {"page": str(path)}})


def validate_model(given: Given) -> None:
    """Score a model file on a second table."""
    screen, model = screen_of(given), given["model"]
    with screen.working(f"reading {model}") as bars:
        estimator = load(model)
        bars(0, 0, f"reading {given['table']}")
        parts = own_rows(estimator, given, second=True)
    show.announce(screen, "validate", parts, parts.notes)
    with screen.working("predicting"), threads_for(parts), caught_warnings() as caught:
        found = assess(estimator, parts.X, parts.y, cv="prefit", **parts.row_options)
    said = [message for message, _ in warned(caught)]
    warnings = [*said, *about_new_rows(estimator, parts.X)]
    show.show_assessment(screen, found, warnings=warnings)
    answer = {"assessment": found.to_dict(), "warnings": warnings}
    screen.finish({"command": "validate", **parts.identity, **answer}, str(found.score))


def own_rows(estimator: Any, given: Given, second: bool = False) -> Design:
    """The table that a model file was fitted on, or a second one, with its columns used as they
    were then.
    """
    features, known = columns_of(given["model"], estimator)
    if "target" not in known:
        raise UserError(
            f"{given['model']} does not name its target: this command needs a model written by "
            "`fitonce fit`."
        )
    adjusting = [Feature(**feature) for feature in known.get("confounds", ())]
    table = read_table(given["table"], expected=[known["target"]], **taken(read_table, given))
    roles = {name: known.get(name) for name in ("group", "time", "weight")}
    if second:  # which may do without them; its rows are in no order
        found = {n: v for n, v in roles.items() if v in table.frame.columns and n != "time"}
        roles = dict.fromkeys(roles) | found
    return design(
        table,
        known["target"],
        task=known["task"],
        group=given["group"] or roles["group"],
        time=roles["time"],
        weight=given["weight"] or roles["weight"],
        confound=[feature.name for feature in adjusting],
        categorical=[feature.name for feature in adjusting if feature.is_category],
        log_target=known.get("log_target", False),
        features=features,
    )
