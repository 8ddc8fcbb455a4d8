"""Options that several commands share, with the words that explain them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

COLUMNS, MODEL, CHECKS, OUTPUT = "The table", "The model", "The check", "Output"


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of columns of the table that was typed before."""
    from .tables import column_names

    typed = [
        ctx.params.get("table"),
        ctx.params.get("rows"),
        *ctx.args,
    ]  # while a line is unfinished, arguments wait in args
    return [
        name
        for path in typed
        if path
        for name in column_names(str(path))
        if name.startswith(incomplete)
    ]


def column(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, autocompletion=complete_column, rich_help_panel=COLUMNS)


def table(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=COLUMNS)


def model(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel=MODEL)


def check(text: str, least: float | None = None) -> Any:
    return typer.Option(help=text, min=least, rich_help_panel=CHECKS)


def output(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=OUTPUT)


TableFile = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Parquet or Arrow file; - reads CSV from standard input.", metavar="TABLE"
    ),
]
ModelFile = Annotated[
    str,
    typer.Argument(help="Model file that `fitonce fit` (or fitonce.save) wrote.", metavar="MODEL"),
]

Target = Annotated[str, column("The column to predict.", "--target", "-t")]
Task = Annotated[
    str, table("classification, regression, or auto: by what the target looks like, which is said.")
]
Group = Annotated[
    str | None, column("Column of groups (subjects, sites): rows of one group are tested together.")
]
Weight = Annotated[str | None, column("Column of row weights; 2 counts like a repeated row.")]
Drop = Annotated[list[str] | None, column("Column to leave out; repeat for more.")]
Keep = Annotated[
    list[str] | None, column("Column to use although it looks like an identifier; repeat for more.")
]
Categorical = Annotated[
    list[str] | None, column("Column of numbers that are names, such as codes; repeat for more.")
]
Separator = Annotated[
    str | None, table("Separator of a text file, if it is not found out rightly.")
]
Header = Annotated[
    bool | None, table("Whether the first row has the names.", "--header/--no-header")
]

Model = Annotated[str | None, model("fisher (default) or lssvm for classes, ridge for numbers.")]
Kernel = Annotated[str, model("rbf, linear, poly, laplacian or cosine.")]
Gamma = Annotated[str, model("Kernel width: tune, scale, ard (one per feature) or a number.")]
Alpha = Annotated[str, model("Regularisation: tune or a number.")]
Landmarks = Annotated[
    str,
    model(
        "Points that stand for the rows of a large table: auto (above 2,000 rows), none or a "
        "number."
    ),
]

Folds = Annotated[int | None, check("Number of folds; 10 up to 500 rows, 5 above.", 2)]
Repeats = Annotated[int, check("How often the rows are divided into folds anew.", 1)]
Permutations = Annotated[
    str, check("Permutations for the p-value: auto (what fits into --seconds), 0 or a number.")
]
Seconds = Annotated[float, check("Time budget of the automatic p-value.", 0.1)]
Seed = Annotated[int, check("Seed of folds, permutations and landmarks.", 0)]

Out = Annotated[
    str | None, output("Folder for the results, or the name of the model file.", "--out", "-o")
]
Json = Annotated[bool, output("One JSON object on standard output.", "--json")]
Quiet = Annotated[bool, output("Nothing but the paths of the files written.", "--quiet", "-q")]
Page = Annotated[
    bool, output("Whether to write the HTML page beside the model.", "--page/--no-page")
]
