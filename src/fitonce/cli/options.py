"""Groups of options that several commands share, with their help texts.

A command takes whole groups. `unfolded` turns every field into an option for typer to read, and
puts the groups together again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from .errors import UserError

if TYPE_CHECKING:
    from .screen import Screen
    from .tables import Table

COLUMNS, MODEL, CHECKS, OUTPUT = "The table", "The model", "The check", "Output"
MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
OUT = ("--out", "-o")
TABLE_OUT = "File: .csv, .tsv, .parquet or .arrow; standard output if not given."


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Column names of the table that was typed before."""
    from .tables import column_names

    # while the command line is incomplete, the arguments are in args
    typed = [ctx.params.get("table"), ctx.params.get("rows"), *ctx.args]
    names = [name for path in typed if path for name in column_names(str(path))]
    return [name for name in names if name.startswith(incomplete)]


def option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


column_option = functools.partial(option, COLUMNS, autocompletion=complete_column)
check_option = functools.partial(option, CHECKS)
output_option = functools.partial(option, OUTPUT)
model_option = functools.partial(option, MODEL)

TableFile = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Excel, Parquet or Arrow file; - reads CSV from standard input.",
        metavar="TABLE",
    ),
]
ModelFile = Annotated[
    str,
    typer.Argument(help="Model file written by `fitonce fit` or fitonce.save.", metavar="MODEL"),
]
Group = Annotated[
    str | None,
    column_option("Column of groups (subjects, sites): rows of one group are tested together."),
]
Folds = Annotated[
    int | None,
    check_option("Number of folds; by default 10 up to 500 rows, 5 above.", "--folds", min=2),
]
Seed = Annotated[int, check_option("Seed for folds, permutations and landmarks.", "--seed", min=0)]
Weight = Annotated[
    str | None, column_option("Column of row weights; weight 2 counts like a repeated row.")
]


@dataclass(frozen=True)
class Reading:
    """How to read a text file."""

    separator: Annotated[
        str | None, option(COLUMNS, "Separator of a text file, if not detected correctly.")
    ] = None
    header: Annotated[
        bool | None,
        option(COLUMNS, "Whether the first row has the column names.", "--header/--no-header"),
    ] = None
    sheet: Annotated[
        str | None, option(COLUMNS, "Sheet of a spreadsheet; the first if not given.")
    ] = None

    def table(self, path: str, expected: Collection[str | None] = ()) -> Table:
        """The table in a file; `expected` are column names that the caller knows."""
        from .tables import read_table

        mark = None if self.separator is None else MARKS.get(self.separator, self.separator)
        if mark is not None and len(mark) != 1:
            raise UserError(
                "--separator must be one character (or tab, comma, semicolon, bar, space), got "
                f"{self.separator!r} instead."
            )
        return read_table(
            path, separator=mark, header=self.header, sheet=self.sheet, expected=expected
        )


@dataclass(frozen=True)
class Request:
    """Which table, and what its columns are used for."""

    table: TableFile
    target: Annotated[str, column_option("The column to predict.", "--target", "-t")]
    task: Annotated[
        str,
        option(
            COLUMNS,
            "classification, regression, or auto (decided from the values of the target).",
        ),
    ] = "auto"
    group: Group = None
    weight: Weight = None
    confound: Annotated[
        list[str] | None,
        column_option(
            "Column to adjust for, such as age or site: numbers, or categories (--categorical for "
            "numeric codes); repeat for more."
        ),
    ] = None
    drop: Annotated[list[str] | None, column_option("Column to leave out; repeat for more.")] = None
    keep: Annotated[
        list[str] | None,
        column_option("Column to use even if it looks like an identifier; repeat for more."),
    ] = None
    categorical: Annotated[
        list[str] | None,
        column_option(
            "Numeric column whose values are categories, such as codes; repeat for more."
        ),
    ] = None

    def read(self, reading: Reading) -> Table:
        named = self.target, self.group, self.weight, *(self.confound or ())
        return reading.table(self.table, named)

    @property
    def roles(self) -> dict[str, Any]:
        """What each column is used for, under the names that `design` knows."""
        return {name: value for name, value in vars(self).items() if name != "table"}


@dataclass(frozen=True)
class Settings:
    """The user's choices about a model; None leaves a choice to the program."""

    effort: Annotated[
        str,
        model_option(
            "fast: one kernel, rbf; default: the kernel is tuned; best: a committee of models with "
            "different kernels, weighted by their held-out probabilities. Above 2,000 rows, all "
            "are fast."
        ),
    ] = "default"
    model: Annotated[
        str | None, model_option("fisher (default) or lssvm for classes, ridge for numbers.")
    ] = None
    kernel: Annotated[
        str,
        model_option(
            "rbf, exponential, matern32, matern52, laplacian, linear, poly or cosine; tune, or "
            "several separated by commas, to choose one by cross-validation; auto follows "
            "--effort, and above 2,000 rows takes the better of linear and rbf."
        ),
    ] = "auto"
    gamma: Annotated[str, model_option("Kernel width: tune, scale or a number.")] = "tune"
    alpha: Annotated[str, model_option("Regularization: tune or a number.")] = "tune"
    confounding: Annotated[
        str,
        model_option(
            "How to adjust for confounds: remove (from the features, in every training set) or "
            "include (as unpenalized predictors)."
        ),
    ] = "remove"
    penalty: str = "function"  # for --versus only
    landmarks: Annotated[
        str,
        model_option(
            "Landmark points for large tables: auto (above 2,000 rows), none or a number."
        ),
    ] = "auto"

    @property
    def tuned(self) -> list[str]:
        """The settings that are chosen from the training rows."""
        names = ("gamma", "alpha", "penalty")
        found = [name for name in names if getattr(self, name) in ("tune", "scale")]
        return ["kernel", *found] if self.kernel == "tune" or "," in self.kernel else found


@dataclass(frozen=True)
class Check:
    """How a model is evaluated, under the names that `assess` knows."""

    cv: Folds = None
    repeats: Annotated[
        int, check_option("How often to repeat the cross-validation with new folds.", min=1)
    ] = 1
    permutations: Annotated[
        str,
        check_option(
            "Permutations for the p-value: auto (999, on at most 1,000 rows), 0 or a number."
        ),
    ] = "auto"
    random_state: Seed = 0

    def __post_init__(self) -> None:
        if self.permutations != "auto" and not self.permutations.isdigit():
            raise UserError(
                "--permutations must be auto or a number of at least 0, got "
                f"{self.permutations!r} instead."
            )

    @property
    def options(self) -> dict[str, Any]:
        """All options, with the permutations as an integer if a number is given."""
        count = self.permutations if self.permutations == "auto" else int(self.permutations)
        return {**vars(self), "permutations": count}


@dataclass(frozen=True)
class Permuting:
    """How to run the permutation test, under the names that `significance` knows."""

    permutations: Annotated[int, check_option("Number of permutations.", min=1)] = 999
    statistic: Annotated[
        str,
        check_option(
            "quick: kernel width from the spread of the features; same: tuned for every "
            "permutation."
        ),
    ] = "quick"
    permute: Annotated[
        str | None,
        check_option(
            "within-folds, resplit or free; by default a mode that is valid for the folds.",
            "--mode",
        ),
    ] = None
    exchange: Annotated[
        str | None, check_option("What is exchanged: rows, within, whole, sign or shift.")
    ] = None
    most_rows: Annotated[
        int,
        check_option("Test at most this many rows, drawn at random.", "--rows", min=10),
    ] = 2000
    checkpoint: Annotated[str | None, check_option("File from which to resume after a stop.")] = (
        None
    )
    cv: Folds = None
    random_state: Seed = 0

    def __post_init__(self) -> None:
        if self.statistic not in ("quick", "same"):
            raise UserError(f"--statistic must be quick or same, got {self.statistic!r} instead.")


@dataclass(frozen=True)
class ResultFiles:
    """The files that a fit writes."""

    out: Annotated[
        str | None, output_option("Folder for the results, or the name of the model file.", *OUT)
    ] = None
    page: Annotated[
        bool, output_option("Whether to write the HTML report as well.", "--page/--no-page")
    ] = True
    force: Annotated[
        bool, output_option("Replace an earlier model of the same name.", "--force")
    ] = False

    def paths(self, table: str) -> tuple[Path, Path]:
        """The model file and the report, checked before the work begins."""
        from .tables import check_output, places, stem_of

        model, page = places(self.out, stem_of(table))
        for path in (model, page) if self.page else (model,):
            check_output(path, table)
        if model.is_file() and not self.force:
            raise UserError(
                f"{model} exists already: give another name with --out, or --force to replace the "
                "earlier model."
            )
        return model, page


@dataclass(frozen=True)
class Shown:
    """What is printed."""

    json: Annotated[bool, output_option("Print one JSON object.", "--json")] = False
    quiet: Annotated[
        bool, output_option("Print only the paths of the files written.", "--quiet", "-q")
    ] = False

    @property
    def screen(self) -> Screen:
        from .screen import Screen

        return Screen(quiet=self.quiet, as_json=self.json)


def unfolded(command: Callable[..., None], hidden: Collection[str] = ()) -> Callable[..., None]:
    """The command with one parameter for every field of its groups, except the hidden ones.

    If a group has a default, it gives the fields theirs.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[Callable[..., Any], set[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, default = hints[name], parameter.default
        if is_dataclass(kind):
            fresh = default is parameter.empty
            make: Any = kind if fresh else functools.partial(replace, default)
            groups[name] = make, {field.name for field in fields(kind)}
            parameters += [one for one in _options(kind, default) if one.name not in hidden]
        else:
            parameters.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, (make, names) in groups.items():
            given[name] = make(**{field: given.pop(field) for field in names & given.keys()})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _options(kind: Any, default: Any) -> list[inspect.Parameter]:
    """A parameter for every field of a group that has a typer option."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[field.name],
            default=getattr(
                default, field.name, getattr(kind, field.name, inspect.Parameter.empty)
            ),
        )
        for field in fields(kind)
        if hasattr(hints[field.name], "__metadata__")
    ]
