"""What the commands do, step by step: read, take apart, assess, fit, show, write."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from ..assessment import assess, compare, significance
from ..assessment.result import plain, summary_of
from ..export import to_onnx
from ..saving import load, read_metadata, save, write_atomically
from . import screen as shown
from .columns import Column, Design, design, features_of
from .errors import UserError
from .files import check_folder, places
from .models import TITLES, Settings, pipeline
from .screen import Screen
from .tables import STDIN, Table, read_table

CHOSEN = ("gamma", "alpha", "penalty", "degree", "coef0")
NAMES = {"KernelFisherDiscriminant": "fisher", "LeastSquaresSVC": "lssvm", "KernelRidge": "ridge"}
SMALL = 1000  # rows up to which one BLAS thread is faster than several
SAMPLE_ABOVE, SAMPLE = (
    20_000,
    10_000,
)  # rows; above, a sample is assessed and chooses the kernel width
MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}


@dataclass(frozen=True)
class Request:
    """Which table, which columns of it, and how to read it."""

    table: str
    target: str
    task: str = "auto"
    group: str | None = None
    weight: str | None = None
    drop: Sequence[str] | None = None
    keep: Sequence[str] | None = None
    categorical: Sequence[str] | None = None
    separator: str | None = None
    header: bool | None = None

    def read(self) -> Table:
        expected = tuple(
            name for name in (self.target, self.group, self.weight) if name is not None
        )
        return read_table(
            self.table, separator=mark_of(self.separator), header=self.header, expected=expected
        )

    def design(self, table: Table) -> Design:
        if self.task not in ("auto", "classification", "regression"):
            raise UserError(
                f"--task must be auto, classification or regression, got {self.task!r} instead."
            )
        return design(
            table, self.target, task=self.task, group=self.group, weight=self.weight, drop=self.drop or (), keep=self.keep or (),
            categorical=self.categorical or (),
        )  # fmt: skip


@dataclass(frozen=True)
class Check:
    """How a model is checked."""

    folds: int | None = None
    repeats: int = 1
    permutations: int | str = "auto"
    seconds: float = 10.0
    seed: int = 0


def mark_of(separator: str | None) -> str | None:
    """A separator by its name or as it is."""
    if separator is None:
        return None
    mark = MARKS.get(separator, separator)
    if len(mark) != 1:
        raise UserError(
            "--separator must be one character (or tab, comma, semicolon, bar, space), got "
            f"{separator!r} instead."
        )
    return mark


def count_of(permutations: str) -> int | str:
    """A number of permutations, or "auto"."""
    if permutations == "auto":
        return permutations
    if not permutations.isdigit():
        raise UserError(
            f"--permutations must be auto or a number from 0 on, got {permutations!r} instead."
        )
    return int(permutations)


# ---- fit -----------------------------------------------------------------------------------------


def fit_table(
    command: str,
    screen: Screen,
    table: Table,
    parts: Design,
    settings: Settings,
    check: Check,
    out: str | None,
    page: bool,
) -> None:
    """Announce, assess, fit on all rows, show, write."""
    where = places(out, table.stem)
    estimator, said = pipeline(parts, settings, check.seed)
    judged, sampling = assessed_rows(parts, check.seed)
    notes = [*parts.notes, *said, *sampling]
    announce(command, screen, table, parts, estimator, notes)
    with screen.bars() as bars, threads_for(parts):
        answer = assessed(estimator, judged, check, bars)
        bars.stage("fit on all rows")
        doubts = fit_all(estimator, parts, judged)
    choice = chosen(estimator)
    show_answer(screen, answer, choice, settings.tuned, doubts)
    metadata = {
        **parts.identity, "table": Path(table.name).name, "notes": notes, "settings": asdict(settings), "chosen": choice,
        "assessment": answer.to_dict(),
    }  # fmt: skip
    files = {"model": str(save(estimator, where.model, metadata=metadata))}
    if page and judged is not parts:
        screen.aside(f"no page: it would hold {len(parts.y):,} rows")
    elif page and write_page(screen, where.page, estimator, parts, answer, Path(table.name).name):
        files["page"] = str(where.page)
    screen.json(plain({"command": command, **metadata, "doubts": doubts, "files": files}))
    screen.paths(list(files.values()))


def threads_for(parts: Design) -> Any:
    """One BLAS thread for a small table.

    Its matrices lose time to more, most of it where other programs are at work.
    """
    return threadpool_limits(1 if len(parts.y) <= SMALL else None)


def announce(
    command: str, screen: Screen, table: Table, parts: Design, estimator: Any, notes: Sequence[str]
) -> None:
    """The table and the model in a few lines."""
    rows, features = parts.X.shape
    if parts.task == "classification":
        labels, counts = np.unique(parts.y, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        listed = ", ".join(f"{labels[i]} {counts[i]:,}" for i in order[:5])
        target = (
            f"{parts.target}: {len(labels)} classes ({listed}{', …' if len(labels) > 5 else ''})"
        )
    else:
        target = f"{parts.target}: numbers from {parts.y.min():.4g} to {parts.y.max():.4g}"
    model = f"model: {TITLES[NAMES[type(estimator[-1]).__name__]]}, {estimator[-1].kernel} kernel"
    name = "standard input" if table.name == STDIN else table.name
    screen.show(
        shown.heading(
            command,
            f"{name}: {rows:,} rows, {features:,} {'feature' if features == 1 else 'features'}; "
            f"target {target}",
        ),
        shown.notes([model, *notes]),
    )


def assessed(estimator: Any, parts: Design, check: Check, bars: Any) -> Any:
    """The assessment; its warnings are in it, so that Python's need not be printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return assess(
            estimator, parts.X, parts.y, groups=parts.groups, sample_weight=parts.weights, cv=check.folds, repeats=check.repeats,
            permutations=check.permutations, seconds=check.seconds, random_state=check.seed, progress=bars,
        )  # fmt: skip


def assessed_rows(parts: Design, seed: int) -> tuple[Design, list[str]]:
    """The rows on which a model is assessed: all of them, or a sample of very many."""
    if len(parts.y) <= SAMPLE_ABOVE:
        return parts, []
    return parts.sample(SAMPLE, seed), [
        f"more than {SAMPLE_ABOVE:,} rows: scores and kernel width come from a random sample of "
        f"{SAMPLE:,}; the model is fitted on all"
    ]


def fit_all(estimator: Any, parts: Design, judged: Design) -> list[str]:
    """Fit on all rows, with the kernel width that a sample chooses where there is one.

    Returns what was warned of.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if judged is not parts:
            _fit(estimator, judged)
            gamma = getattr(estimator[-1], "gamma_", None)
            if gamma is not None:
                estimator.set_params(model__gamma=gamma)
        _fit(estimator, parts)
    return _messages(caught)


def _fit(estimator: Any, parts: Design) -> None:
    given = {"model__groups": parts.groups, "model__sample_weight": parts.weights}
    estimator.fit(
        parts.X, parts.y, **{name: values for name, values in given.items() if values is not None}
    )


def _messages(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    ignored = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
    return list(
        dict.fromkeys(
            str(warning.message) for warning in caught if not issubclass(warning.category, ignored)
        )
    )


def chosen(estimator: Any) -> dict[str, Any]:
    """The parameters that a fitted pipeline has taken."""
    used = {
        name: getattr(estimator[-1], f"{name}_")
        for name in CHOSEN
        if hasattr(estimator[-1], f"{name}_")
    }
    return {
        name: value if isinstance(value, str) else np.asarray(value).tolist()
        for name, value in used.items()
    }


def show_answer(
    screen: Screen, answer: Any, choice: dict[str, Any], tuned: Sequence[str], doubts: Sequence[str]
) -> None:
    """An assessment, from the headline to the doubts."""
    screen.show("", shown.scores(screen, answer))
    if answer.permutation is not None:
        screen.show("", shown.significance(answer.permutation, answer.permutation_statistic))
    if answer.confusion is not None:
        screen.show("", shown.confusion(screen, answer))
    if answer.calibration is not None:
        screen.show("", shown.calibration(answer))
    if choice:
        screen.show("", shown.chosen(choice, answer, tuned))
    everything = list(dict.fromkeys([*answer.warnings, *doubts]))
    if everything:
        screen.show("", shown.doubts(everything))
    screen.show("")


def write_page(
    screen: Screen, path: Path, estimator: Any, parts: Design, answer: Any, title: str
) -> bool:
    """Write the HTML page; False, with a remark, where what it needs is not installed."""
    try:
        from ..report import write_report

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the fit have been shown
            write_report(
                path,
                estimator,
                parts.X,
                parts.y,
                assessment=answer,
                feature_names=parts.X.columns,
                title=title,
                sample_weight=parts.weights,
            )
    except ImportError as error:
        screen.aside(f"no page: {error}")
        return False
    return True


# ---- evaluate, permute ---------------------------------------------------------------------------


def evaluate_table(
    screen: Screen, request: Request, settings: Settings, versus: str | None, check: Check
) -> None:
    """Assess one setting, or two on the same folds."""
    other = None if versus is None else settings.changed(versus)
    table = request.read()
    parts = request.design(table)
    estimator, said = pipeline(parts, settings, check.seed)
    second = None if other is None else pipeline(parts, other, check.seed)[0]
    judged, sampling = assessed_rows(parts, check.seed)
    announce("evaluate", screen, table, parts, estimator, [*parts.notes, *said, *sampling])
    with screen.bars() as bars, threads_for(parts):
        answer = assessed(estimator, judged, check, bars)
        beside = (
            None
            if second is None
            else assessed(
                second, judged, Check(check.folds, check.repeats, 0, 1.0, check.seed), bars
            )
        )
    show_answer(screen, answer, {}, (), ())
    result: dict[str, Any] = {
        "command": "evaluate",
        **parts.identity,
        "settings": asdict(settings),
        "assessment": answer.to_dict(),
    }
    if other is not None and beside is not None:
        comparison = compare(answer, beside)
        screen.show(
            shown.side_by_side(screen, str(settings), answer, str(other), beside, comparison)
        )
        result["versus"] = {
            "settings": asdict(other),
            "assessment": beside.to_dict(),
            "comparison": vars(comparison),
        }
    screen.json(plain(result))


def permute_table(
    screen: Screen, request: Request, settings: Settings, *, permutations: int, statistic: str, mode: str | None, exchange: str | None,
    rows: int, folds: int | None, checkpoint: str | None, seed: int,
) -> None:  # fmt: skip
    """The permutation test by itself."""
    table = request.read()
    parts = request.design(table)
    estimator, _ = pipeline(parts, settings, seed)
    announce("permute", screen, table, parts, estimator, parts.notes)
    with screen.bars() as bars, threads_for(parts), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bars.stage("preparing")
        test, said = significance(
            estimator, parts.X, parts.y, groups=parts.groups, cv=folds, permutations=permutations, statistic=statistic, permute=mode,
            exchange=exchange, most_rows=rows, checkpoint=checkpoint, random_state=seed,
        )  # fmt: skip
    doubts = _messages(caught)
    screen.show("", shown.null(test), shown.significance(test, said))
    if doubts:
        screen.show("", shown.doubts(doubts))
    screen.json(
        plain(
            {
                "command": "permute",
                **parts.identity,
                "statistic": said,
                "doubts": doubts,
                "permutation": summary_of(test, rows=True),
            }
        )
    )


# ---- predict, export, report ---------------------------------------------------------------------


def predict_rows(
    screen: Screen,
    model: str,
    rows: str,
    out: str | None,
    keep: Sequence[str],
    separator: str | None,
    header: bool | None,
) -> None:
    """Labels and probabilities (or numbers) of new rows, as CSV on standard output or in a file."""
    if out is not None:
        check_folder(Path(out).parent)
    estimator = load(model)
    columns, target = columns_of(model, estimator)
    table = read_table(
        rows,
        separator=mark_of(separator),
        header=header,
        expected=tuple(column.name for column in columns),
    )
    unknown = [name for name in keep if name not in table.frame.columns]
    if unknown:
        raise UserError(
            f"{rows} has no column {unknown[0]!r} (--keep). Its columns are "
            f"{', '.join(map(repr, table.frame.columns[:12]))}."
        )
    X, notes = features_of(table.frame, columns, rows)
    for note in [*table.notes, *notes, *_unknown_categories(estimator, X)]:
        screen.aside(note)
    predictions = _predictions(estimator, X)
    frame = pl.DataFrame([*(table.frame[name] for name in keep), *predictions])
    if target is not None and target in table.frame.columns:
        screen.aside(_agreement(estimator, table.frame[target], predictions[0], target))
    if out is None:
        sys.stdout.write(frame.write_csv())
    else:
        write_table(frame, out)
        screen.paths([out])


def columns_of(model: str, estimator: Any) -> tuple[list[Column], str | None]:
    """The columns a model file was fitted on, from its metadata or, for models saved from Python,
    its feature names.
    """
    metadata = read_metadata(model)
    if "columns" in metadata:
        return [
            Column(str(column["name"]), str(column["kind"])) for column in metadata["columns"]
        ], metadata.get("target")
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise UserError(
            f"{model} does not say which columns it was fitted on: it was saved from Python "
            "without column names. Predict there, or fit it "
            "on a table with names."
        )
    return [Column(str(name), "number") for name in names], None


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
    for values, known, rare in zip(
        text, encoder.categories_, encoder.infrequent_categories_, strict=True
    ):
        others = values.filter(~values.is_in(known.tolist()))
        if others.len():
            examples = ", ".join(
                repr(value) for value in others.unique(maintain_order=True).head(3)
            )
            taken_as = (
                "they count as none of its values"
                if rare is None
                else "they count with its rare values"
            )
            said.append(
                f"{others.len():,} values of {values.name!r} did not occur when the model was "
                f"fitted ({examples}): {taken_as}"
            )
    return said


def _predictions(estimator: Any, X: pl.DataFrame) -> list[pl.Series]:
    predictions = [pl.Series("prediction", np.asarray(estimator.predict(X)).tolist())]
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(X))
        predictions += [
            pl.Series(f"probability_{label}", probabilities[:, i])
            for i, label in enumerate(estimator.classes_.tolist())
        ]
    return predictions


def _agreement(estimator: Any, truth: pl.Series, predicted: pl.Series, target: str) -> str:
    known = truth.is_not_null()
    if hasattr(estimator, "classes_"):
        right = truth.cast(pl.String).str.strip_chars().filter(known) == predicted.cast(
            pl.String
        ).filter(known)
        said = (
            f"{int(right.sum()):,} of {right.len():,} predictions agree with the column {target!r}"
        )
    else:
        error: Any = (
            (truth.cast(pl.Float64, strict=False) - predicted.cast(pl.Float64)).abs().mean()
        )
        said = f"mean absolute error beside the column {target!r}: {error:.4g}"
    return f"{said} (no honest figure if the model was fitted on these rows)"


def write_table(frame: pl.DataFrame, path: str) -> None:
    """A table in the format that the name ends in, whole or not at all."""
    import io

    ending, content = Path(path).suffix.lower(), io.BytesIO()
    if ending in (".parquet", ".pq"):
        frame.write_parquet(content)
    elif ending in (".arrow", ".feather", ".ipc"):
        frame.write_ipc(content)
    elif ending == ".tsv":
        frame.write_csv(content, separator="\t")
    elif ending in (".csv", ".txt", ""):
        frame.write_csv(content)
    else:
        raise UserError(f"--out must end in .csv, .tsv, .parquet or .arrow, got {path} instead.")
    write_atomically(path, content.getvalue())


def export_model(screen: Screen, model: str, out: str | None, rows: str | None, dtype: str) -> None:
    """A model file as ONNX, with the error measured on rows, if given, else on the model's own."""
    path = Path(out) if out is not None else Path(Path(model).name).with_suffix(".onnx")
    check_folder(path.parent)
    estimator = load(model)
    X = None
    if rows is not None:
        X = features_of(read_table(rows).frame, columns_of(model, estimator)[0], rows)[0]
    graph = to_onnx(estimator, X, path=path, dtype=dtype)
    stored = {entry.key: entry.value for entry in graph.metadata_props}
    error = next((value for key, value in stored.items() if "error" in key), "unknown")
    screen.show(f"largest difference from the model, relative: {error}")
    screen.json(
        {"command": "export", "model": model, "file": str(path), "error": error, "dtype": dtype}
    )
    screen.paths([str(path)])


def report_page(
    screen: Screen, model: str, request: Request, out: str | None, check: Check, include_data: bool
) -> None:
    """The HTML page of a model file and the table it was fitted on."""
    from ..report import write_report

    path = Path(out) if out is not None else Path(Path(model).name).with_suffix(".html")
    check_folder(path.parent)
    estimator = load(model)
    metadata = read_metadata(model)
    if "target" not in metadata:
        raise UserError(
            f"{model} does not name its target: pages are for models that `fitonce fit` wrote."
        )
    table = read_table(
        request.table,
        separator=mark_of(request.separator),
        header=request.header,
        expected=(metadata["target"],),
    )
    group, weight = request.group or metadata.get("group"), request.weight or metadata.get("weight")
    columns, _ = columns_of(model, estimator)
    names = {column.name for column in columns}
    others = [
        name
        for name in table.frame.columns
        if name not in names and name not in (metadata["target"], group, weight)
    ]
    parts = design(
        table, metadata["target"], task=metadata["task"], group=group, weight=weight, drop=others, keep=sorted(names),
        categorical=[column.name for column in columns if column.kind == "category"],
    )  # fmt: skip
    if [column.name for column in parts.columns] != [column.name for column in columns]:
        raise UserError(f"{request.table} does not have the columns that {model} was fitted on.")
    with screen.bars() as bars, threads_for(parts):
        judged, _ = assessed_rows(parts, check.seed)
        answer = assessed(estimator, judged, check, bars)
        bars.stage("fit again for the page")
        fit_all(estimator, parts, judged)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_report(
            path, estimator, parts.X, parts.y, assessment=answer, feature_names=parts.X.columns, title=Path(table.name).name,
            include_data=include_data, sample_weight=parts.weights,
        )  # fmt: skip
    screen.json({"command": "report", "page": str(path)})
    screen.paths([str(path)])
