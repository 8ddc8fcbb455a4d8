"""What the commands do, step by step: take apart, assess, fit, show, write; then the same for those
on a model file: predict, export, report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from ..assessment import Assessment, assess, choice_of, compare, significance
from ..assessment.assess import warned
from ..assessment.result import plain, summary_of
from ..assessment.words import MODELS, listed
from ..core.doubt import caught_warnings
from ..io.onnx import measured_error, to_onnx
from ..io.saving import load, read_metadata, save
from . import answers
from .bounds import bounds, check_interval
from .columns import TableDesign, check_columns, design, features_of
from .errors import UserError
from .models import pipeline
from .options import Check, Permuting, Reading, Request, ResultFiles, Settings
from .screen import Screen
from .tables import STDIN, Table, beside, check_folder, places, write_table
from .values import CATEGORY, NUMBERS, examples, text_of

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
    with screen.bars(), threads_for(parts):
        answer = assessed(estimator, judged, check)
        again = replace(check, permutations="0")
        versus = None if second is None else assessed(second, judged, again)
    screen.show(*answers.answer_parts(screen, answer))
    result = {**parts.identity, "settings": asdict(settings), "assessment": answer.to_dict()}
    if other is not None and versus is not None:
        comparison = compare(answer, versus)
        both = [(str(settings), str(answer.score)), (str(other), str(versus.score))]
        screen.show(answers.side_by_side(screen, both, comparison))
        result["versus"] = {
            "settings": asdict(other),
            "assessment": versus.to_dict(),
            "comparison": comparison,
        }
    screen.json(plain({"command": "evaluate", **result}))


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
    found = {"statistic": said, "doubts": doubts, "permutation": summary_of(test, rows=True)}
    screen.json(plain({"command": "permute", **parts.identity, **found}))


# ---- commands on a model file --------------------------------------------------------------------


def predict_rows(
    screen: Screen,
    model: str,
    rows: str,
    reading: Reading,
    keep: Sequence[str],
    out: str | None,
    interval: float | None = None,
    trained_on: str | None = None,
) -> None:
    """Labels and probabilities (or numbers) of new rows, as CSV on standard output or in a file."""
    check_interval(interval, trained_on)
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
    if interval is not None and trained_on is not None:
        refit = partial(_fit_again, screen, model, trained_on)
        predictions += bounds(estimator, refit, X, interval)
    screen.paths(write_table(pl.DataFrame([*table.frame.select(keep), *predictions]), out))


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
    estimator = load(model)
    table, parts = own_rows(model, estimator, reading, request.table, request.group, request.weight)
    with screen.bars() as bars, threads_for(parts):
        judged, _ = assessed_rows(parts, check.random_state)
        answer = assessed(estimator, judged, check)
        bars(0, 0, "fit again for the page")
        fit_all(estimator, parts, judged)
    write_page(path, estimator, parts, answer, Path(table.name).name, include_data=include_data)
    screen.json({"command": "report", "page": str(path)})
    screen.paths([str(path)])


# ---- steps ---------------------------------------------------------------------------------------


def _fit_again(screen: Screen, model: str, name: str, estimator: Any) -> TableDesign:
    """Fit a loaded model on its own table, as `fit` did."""
    _, parts = own_rows(model, estimator, Reading(), name)
    with screen.bars() as bars, threads_for(parts):
        bars(0, 0, "fit again for the intervals")
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
    """The table that a model file was fitted on, taken apart as it was."""
    known = read_metadata(model)
    if "target" not in known:
        raise UserError(
            f"{model} does not name its target: this is for models that `fitonce fit` wrote."
        )
    table = reading.table(name, [known["target"]])
    kinds, _ = columns_of(model, estimator)
    group, weight = group or known.get("group"), weight or known.get("weight")
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
        raise UserError(f"{name} does not have the columns that {model} was fitted on.")
    return table, parts


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
    head = f"{name}: {size}; target {parts.target}: {target}"
    screen.show(answers.announcement(command, head, [model, *notes]))


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
    rows = {"groups": parts.groups, "sample_weight": parts.weights}
    with caught_warnings():
        return assess(estimator, parts.X, parts.y, **rows | check.options)


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
    with caught_warnings():  # those of the fit have been shown
        write_report(path, estimator, parts.X, parts.y, assessment=answer, title=title, **given)


# ---- predictions ---------------------------------------------------------------------------------


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


def _unknown_categories(estimator: Any, X: pl.DataFrame) -> Iterator[str]:
    """A word about values that the categories of the model's rows do not have.

    Only pipelines of `fit` are known from the inside.
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
            taken = "as none of its values" if rare is None else "with its rare values"
            yield (
                f"{others.len():,} values of {values.name!r} did not occur when the model was "
                f"fitted ({examples(others)}): they count {taken}"
            )


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
