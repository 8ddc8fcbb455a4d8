"""Options in groups that several commands share, with the words that explain them.

A command takes whole groups; `unfolded` makes an option of every field for typer to read, and puts
the groups together again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, is_dataclass, replace
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
    """Names of columns of the table that was typed before."""
    from .tables import column_names

    # while a line is unfinished, arguments wait in args
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
    typer.Argument(help="Model file that `fitonce fit` (or fitonce.save) wrote.", metavar="MODEL"),
]
Group = Annotated[
    str | None,
    column_option("Column of groups (subjects, sites): rows of one group are tested together."),
]
Folds = Annotated[
    int | None,
    check_option("Number of folds; 10 up to 500 rows, 5 above.", "--folds", min=2),
]
Seed = Annotated[int, check_option("Seed of folds, permutations and landmarks.", "--seed", min=0)]
Weight = Annotated[
    str | None, column_option("Column of row weights; 2 counts like a repeated row.")
]


@dataclass(frozen=True)
class Reading:
    """How a text file is read."""

    separator: Annotated[
        str | None, option(COLUMNS, "Separator of a text file, if it is not found out rightly.")
    ] = None
    header: Annotated[
        bool | None,
        option(COLUMNS, "Whether the first row has the names.", "--header/--no-header"),
    ] = None
    sheet: Annotated[
        str | None, option(COLUMNS, "Sheet of a spreadsheet; the first if not given.")
    ] = None

    def table(self, path: str, expected: Collection[str | None] = ()) -> Table:
        """The table in a file; `expected` are names of columns that the caller knows of."""
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
    """Which table, and what its columns are for."""

    table: TableFile
    target: Annotated[str, column_option("The column to predict.", "--target", "-t")]
    task: Annotated[
        str,
        option(
            COLUMNS,
            "classification, regression, or auto: by what the target looks like, which is said.",
        ),
    ] = "auto"
    group: Group = None
    weight: Weight = None
    confound: Annotated[
        list[str] | None,
        column_option(
            "Column that must not explain anything, such as age or site: numbers, or categories "
            "(--categorical for codes); repeat for more."
        ),
    ] = None
    drop: Annotated[list[str] | None, column_option("Column to leave out; repeat for more.")] = None
    keep: Annotated[
        list[str] | None,
        column_option("Column to use although it looks like an identifier; repeat for more."),
    ] = None
    categorical: Annotated[
        list[str] | None,
        column_option("Column of numbers that are names, such as codes; repeat for more."),
    ] = None

    def read(self, reading: Reading) -> Table:
        named = self.target, self.group, self.weight, *(self.confound or ())
        return reading.table(self.table, named)

    @property
    def roles(self) -> dict[str, Any]:
        """What each column is for, by the names that `design` knows."""
        return {name: value for name, value in vars(self).items() if name != "table"}


@dataclass(frozen=True)
class Settings:
    """What the user may choose about a model; None leaves it to the program."""

    effort: Annotated[
        str,
        model_option(
            "fast: one kernel, rbf; default: the kernel is chosen; best: a committee of models "
            "with different kernels, weighed by their held-out probabilities. Above 2,000 rows all "
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
            "several with commas, to have one chosen; auto: as --effort says, and for more than "
            "2,000 rows the better of linear and rbf."
        ),
    ] = "auto"
    gamma: Annotated[str, model_option("Kernel width: tune, scale or a number.")] = "tune"
    alpha: Annotated[str, model_option("Regularisation: tune or a number.")] = "tune"
    confounding: Annotated[
        str,
        model_option(
            "What is done with confounds: remove (out of the features, on every training set), "
            "include (as predictors without a penalty) or columns (out of the columns)."
        ),
    ] = "remove"
    metric: Annotated[
        str,
        model_option(
            "A metric learned from the data: none, diagonal (a weight for each feature), full or "
            "learn (the better of both). Kept where it pays."
        ),
    ] = "none"
    penalty: str = "function"  # for --versus only
    landmarks: Annotated[
        str,
        model_option(
            "Points that stand for the rows of a large table: auto (above 2,000 rows), none or a "
            "number."
        ),
    ] = "auto"

    def changed(self, text: str) -> Settings:
        """These settings with some of them replaced, as in "kernel=linear,alpha=1"."""
        changes: dict[str, str] = {}
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or name not in vars(self) or not value:
                raise UserError(
                    f"{part!r} is no setting: write name=value, such as kernel=linear,alpha=1. "
                    f"The names are {', '.join(vars(self))}."
                )
            changes[name] = value
        return replace(self, **changes)

    @property
    def tuned(self) -> list[str]:
        """What the training rows decide."""
        names = ("gamma", "alpha", "penalty")
        found = [name for name in names if getattr(self, name) in ("tune", "scale")]
        return ["kernel", *found] if self.kernel == "tune" or "," in self.kernel else found

    def __str__(self) -> str:
        usual = vars(Settings())
        changed = [f"{name}={value}" for name, value in vars(self).items() if value != usual[name]]
        return ", ".join(changed) or "defaults"


@dataclass(frozen=True)
class Check:
    """How a model is checked, by the names that `assess` knows."""

    cv: Folds = None
    repeats: Annotated[
        int, check_option("How often the rows are divided into folds anew.", min=1)
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
                "--permutations must be auto or a number from 0 on, got "
                f"{self.permutations!r} instead."
            )

    @property
    def options(self) -> dict[str, Any]:
        """All of it, with the permutations as a number where they are one."""
        count = self.permutations if self.permutations == "auto" else int(self.permutations)
        return {**vars(self), "permutations": count}


@dataclass(frozen=True)
class Permuting:
    """How the permutation test is made, by the names that `significance` knows."""

    permutations: Annotated[int, check_option("Number of permutations.", min=1)] = 999
    statistic: Annotated[
        str,
        check_option(
            "quick: kernel width from the spread of the features; same: tuned again each time."
        ),
    ] = "quick"
    permute: Annotated[
        str | None,
        check_option(
            "within-folds, resplit or free; by default what is valid with the folds.", "--mode"
        ),
    ] = None
    exchange: Annotated[
        str | None, check_option("What trades places: rows, within, whole, sign or shift.")
    ] = None
    most_rows: Annotated[
        int,
        check_option("Test a random sample of so many rows, if there are more.", "--rows", min=10),
    ] = 2000
    checkpoint: Annotated[str | None, check_option("File to go on from after an interruption.")] = (
        None
    )
    cv: Folds = None
    random_state: Seed = 0

    def __post_init__(self) -> None:
        if self.statistic not in ("quick", "same"):
            raise UserError(f"--statistic must be quick or same, got {self.statistic!r} instead.")


@dataclass(frozen=True)
class ResultFiles:
    """What a fit writes, and where to."""

    out: Annotated[
        str | None, output_option("Folder for the results, or the name of the model file.", *OUT)
    ] = None
    page: Annotated[
        bool, output_option("Whether to write the HTML page beside the model.", "--page/--no-page")
    ] = True


@dataclass(frozen=True)
class Shown:
    """What is printed."""

    json: Annotated[bool, output_option("One JSON object on standard output.", "--json")] = False
    quiet: Annotated[
        bool, output_option("Nothing but the paths of the files written.", "--quiet", "-q")
    ] = False

    @property
    def screen(self) -> Screen:
        from .screen import Screen

        return Screen(quiet=self.quiet, as_json=self.json)


def unfolded(command: Callable[..., None], hidden: Collection[str] = ()) -> Callable[..., None]:
    """The command with every field of its groups as a parameter of its own, less the hidden ones.

    Where a group has a default, it gives the fields theirs.
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
    """A parameter for every field of a group that typer knows how to ask for."""
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
