"""The options of the commands, with their help."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

TABLE, MODEL, CHECK, OUTPUT = "The table", "The model", "The check", "Output"


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Column names of the table that was typed before."""
    from .table import column_names

    # while the command line is incomplete, the arguments are in args
    typed = [ctx.params.get("table"), ctx.params.get("rows"), *ctx.args]
    names = [name for path in typed if path for name in column_names(str(path))]
    return [name for name in names if name.startswith(incomplete)]


def setting(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


column = partial(setting, TABLE, autocompletion=complete_column)
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
Text = str | None
Columns = list[str] | None
Target = Annotated[str, column("The column to predict.", "--target", "-t")]
Task = Annotated[
    str,
    setting(TABLE, "classification, regression, or auto (decided from the values of the target)."),
]
Group = Annotated[
    Text, column("Column of groups (subjects, sites): rows of one group are tested together.")
]
Time = Annotated[
    Text,
    column(
        "Column of dates or numbers that orders the rows in time: every fold is predicted from "
        "earlier rows, and labels are shifted in time for the p-value."
    ),
]
Weight = Annotated[Text, column("Column of row weights; weight 2 counts like a repeated row.")]
Confound = Annotated[
    Columns,
    column(
        "Column to adjust for, such as age or site: numbers, or categories (--categorical for "
        "numeric codes); repeat for more."
    ),
]
Drop = Annotated[Columns, column("Column to leave out; repeat for more.")]
Keep = Annotated[
    Columns, column("Column to use even if it looks like an identifier; repeat for more.")
]
Categorical = Annotated[
    Columns,
    column("Numeric column whose values are categories, such as codes; repeat for more."),
]
Ordered = Annotated[
    Columns,
    column(
        "Column of categories with an order, lowest first, as in size=S,M,L: used as one number; "
        "repeat for more."
    ),
]
Missing = Annotated[
    Columns, setting(TABLE, "Further code of missing values, such as -999; repeat for more.")
]
Separator = Annotated[Text, setting(TABLE, "Separator of a text file, if not detected correctly.")]
Header = Annotated[
    bool | None,
    setting(TABLE, "Whether the first row has the column names.", "--header/--no-header"),
]
LogTarget = Annotated[
    bool,
    setting(
        TABLE,
        "Predict the logarithm of a positive target, which scores refer to; `predict` gives "
        "numbers on its own scale.",
        "--log-target",
    ),
]
Sheet = Annotated[Text, setting(TABLE, "Sheet of a spreadsheet; the first if not given.")]
Effort = Annotated[
    str,
    setting(
        MODEL,
        "fast: one kernel, rbf; default: the kernel is tuned; best: a committee of models with "
        "different kernels, weighted by their held-out probabilities. Above 2,000 rows, all "
        "are fast.",
    ),
]
Model = Annotated[Text, setting(MODEL, "fisher (default) or lssvm for classes, ridge for numbers.")]
Kernel = Annotated[
    str,
    setting(
        MODEL,
        "rbf, exponential, matern32, matern52, laplacian, linear, poly or cosine; tune, or "
        "several separated by commas, to choose one by cross-validation; auto follows "
        "--effort, and above 2,000 rows takes the better of linear and rbf.",
    ),
]
Gamma = Annotated[str, setting(MODEL, "Kernel width: tune, scale or a number.")]
Priors = Annotated[
    Text,
    setting(
        MODEL,
        "Weights of the classes in a decision: equal, or one number per class in the order of the "
        "labels, separated by commas; by default the shares of their rows. lssvm takes equal only.",
    ),
]
Alpha = Annotated[str, setting(MODEL, "Regularization: tune or a number.")]
Confounding = Annotated[
    str,
    setting(
        MODEL,
        "How to adjust for confounds: remove (from the features, in every training set) or "
        "include (as unpenalized predictors).",
    ),
]
Landmarks = Annotated[
    str,
    setting(MODEL, "Landmark points for large tables: auto (above 2,000 rows), none or a number."),
]
Folds = Annotated[
    int | None,
    setting(
        CHECK, "Number of folds; by default 5 above 500 rows, 5 to 10 below.", "--folds", min=2
    ),
]
Score = Annotated[
    str,
    setting(
        CHECK,
        "The main score of classes: accuracy, balanced (the mean recall), auc (of two), or auto: "
        "balanced with --priors, if one class has nine tenths of the rows, or is never predicted.",
    ),
]
Repeats = Annotated[
    int, setting(CHECK, "How often to repeat the cross-validation with new folds.", min=1)
]
Permutations = Annotated[
    str,
    setting(CHECK, "Permutations for the p-value: auto (999, at most 1,000 rows), 0 or a number."),
]
Seed = Annotated[
    int, setting(CHECK, "Seed for folds, permutations and landmarks.", "--seed", min=0)
]
Page = Annotated[
    bool, setting(OUTPUT, "Whether to write the HTML report as well.", "--page/--no-page")
]
Data = Annotated[
    bool, setting(OUTPUT, "Whether to include the rows in the report.", "--data/--no-data")
]
Json = Annotated[bool, setting(OUTPUT, "Print one JSON object.", "--json")]
Quiet = Annotated[
    bool,
    setting(OUTPUT, "Print only the paths of the files written, or the result.", "--quiet", "-q"),
]


def written(text: str) -> Any:
    return setting(OUTPUT, text, "--out", "-o")


Out = Annotated[Text, written("Folder for the results, or the name of the model file.")]
Force = Annotated[bool, setting(OUTPUT, "Replace an earlier model of the same name.", "--force")]
