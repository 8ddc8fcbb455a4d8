"""The commands of `fitonce` and their options.

The work is done in `run`, which is imported only when a command runs. This keeps help and
completion fast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from .errors import careful

TABLE, MODEL, CHECK, OUTPUT = "The table", "The model", "The check", "Output"


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Column names of the table that was typed before."""
    from .table import column_names

    # while the command line is incomplete, the arguments are in args
    typed = [ctx.params.get("table"), ctx.params.get("rows"), *ctx.args]
    names = [name for path in typed if path for name in column_names(str(path))]
    return [name for name in names if name.startswith(incomplete)]


def option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


column = partial(option, TABLE, autocompletion=complete_column)

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
Rows = Annotated[
    str, typer.Argument(help="Table of new rows; - reads CSV from standard input.", metavar="ROWS")
]
Text = str | None
Columns = list[str] | None
Target = Annotated[str, column("The column to predict.", "--target", "-t")]
Task = Annotated[
    str,
    option(TABLE, "classification, regression, or auto (decided from the values of the target)."),
]
Group = Annotated[
    Text, column("Column of groups (subjects, sites): rows of one group are tested together.")
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
Missing = Annotated[
    Columns, option(TABLE, "Further code of missing values, such as -999; repeat for more.")
]
Separator = Annotated[Text, option(TABLE, "Separator of a text file, if not detected correctly.")]
Header = Annotated[
    bool | None,
    option(TABLE, "Whether the first row has the column names.", "--header/--no-header"),
]
Sheet = Annotated[Text, option(TABLE, "Sheet of a spreadsheet; the first if not given.")]

Effort = Annotated[
    str,
    option(
        MODEL,
        "fast: one kernel, rbf; default: the kernel is tuned; best: a committee of models with "
        "different kernels, weighted by their held-out probabilities. Above 2,000 rows, all "
        "are fast.",
    ),
]
Model = Annotated[Text, option(MODEL, "fisher (default) or lssvm for classes, ridge for numbers.")]
Kernel = Annotated[
    str,
    option(
        MODEL,
        "rbf, exponential, matern32, matern52, laplacian, linear, poly or cosine; tune, or "
        "several separated by commas, to choose one by cross-validation; auto follows "
        "--effort, and above 2,000 rows takes the better of linear and rbf.",
    ),
]
Gamma = Annotated[str, option(MODEL, "Kernel width: tune, scale or a number.")]
Alpha = Annotated[str, option(MODEL, "Regularization: tune or a number.")]
Confounding = Annotated[
    str,
    option(
        MODEL,
        "How to adjust for confounds: remove (from the features, in every training set) or "
        "include (as unpenalized predictors).",
    ),
]
Landmarks = Annotated[
    str,
    option(MODEL, "Landmark points for large tables: auto (above 2,000 rows), none or a number."),
]
Models = Annotated[
    str,
    option(
        MODEL,
        "Two or more of tune (the kernel is tuned), rbf, exponential, matern32, matern52, "
        "laplacian, linear, poly, cosine, forest and baseline, separated by commas.",
    ),
]

Folds = Annotated[
    int | None,
    option(CHECK, "Number of folds; by default 5 above 500 rows, 5 to 10 below.", "--folds", min=2),
]
Repeats = Annotated[
    int, option(CHECK, "How often to repeat the cross-validation with new folds.", min=1)
]
Permutations = Annotated[
    str,
    option(CHECK, "Permutations for the p-value: auto (999, at most 1,000 rows), 0 or a number."),
]
Seed = Annotated[int, option(CHECK, "Seed for folds, permutations and landmarks.", "--seed", min=0)]

TABLE_OUT = "File: .csv, .tsv, .parquet or .arrow; standard output if not given."
Page = Annotated[
    bool, option(OUTPUT, "Whether to write the HTML report as well.", "--page/--no-page")
]
Data = Annotated[
    bool, option(OUTPUT, "Whether to include the rows in the report.", "--data/--no-data")
]
Json = Annotated[bool, option(OUTPUT, "Print one JSON object.", "--json")]
Quiet = Annotated[
    bool,
    option(OUTPUT, "Print only the paths of the files written, or the result.", "--quiet", "-q"),
]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Kernel Fisher discriminants, LS-SVM and kernel ridge regression for tables.",
    epilog=(
        "[bold]Start here[/]\n\n"
        "[cyan]fitonce demo[/]: try it on example data\n\n"
        "[cyan]fitonce fit table.csv --target species[/]: analyze your own table and save the "
        "model\n\n"
        "[cyan]fitonce predict table-fitonce.skops new.csv[/]: predict labels and probabilities of "
        "new rows\n\n"
        "Each command has examples: [cyan]fitonce fit --help[/]"
    ),
)


def written(text: str) -> Any:
    return option(OUTPUT, text, "--out", "-o")


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command whose help ends with examples."""
    ending = "[bold]Examples[/]\n\n" + "\n\n".join(f"[cyan]{line}[/]" for line in examples)

    def added(function: Callable[..., None]) -> Callable[..., None]:
        return app.command(epilog=ending)(careful(function))

    return added


def show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"fitonce {version('fitonce')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Handle --version; nothing else."""


@command(
    "fitonce fit iris.csv --target species",
    "fitonce fit trials.parquet -t outcome --group patient --weight n --out results",
    "fitonce fit houses.csv -t price --kernel linear --json > houses.json",
)
def fit(
    ctx: typer.Context,
    table: TableFile,
    target: Target,
    task: Task = "auto",
    group: Group = None,
    weight: Weight = None,
    confound: Confound = None,
    drop: Drop = None,
    keep: Keep = None,
    categorical: Categorical = None,
    missing: Missing = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    effort: Effort = "default",
    model: Model = None,
    kernel: Kernel = "auto",
    gamma: Gamma = "tune",
    alpha: Alpha = "tune",
    confounding: Confounding = "remove",
    landmarks: Landmarks = "auto",
    cv: Folds = None,
    repeats: Repeats = 1,
    permutations: Permutations = "auto",
    random_state: Seed = 0,
    out: Annotated[
        str | None, written("Folder for the results, or the name of the model file.")
    ] = None,
    page: Page = True,
    data: Data = True,
    force: Annotated[
        bool, option(OUTPUT, "Replace an earlier model of the same name.", "--force")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table, estimate how well it predicts new rows, and save it.

    The kernel width and the regularization are tuned. The accuracy comes from nested
    cross-validation: tuning, scaling and imputation are repeated in every fold. The output also
    gives a confidence interval, the baseline, a permutation p-value, the calibration and the chosen
    settings.

    The model is written to TABLE-fitonce.skops and the report to TABLE-fitonce.html, in the current
    folder or in the folder given by --out.
    """
    from .run import fit_table

    fit_table("fit", ctx.params)


@command("fitonce demo", "fitonce demo --out results --json")
def demo(
    ctx: typer.Context,
    random_state: Seed = 0,
    out: Annotated[
        str | None, written("Folder for the results, or the name of the model file.")
    ] = None,
    page: Page = True,
    force: Annotated[
        bool, option(OUTPUT, "Replace an earlier model of the same name.", "--force")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run `fit` on example data.

    The data are 569 biopsies, benign or malignant, with 30 measurements each.
    """
    from .run import fit_table

    usual = {"permutations": "auto", "kernel": "auto", "landmarks": "auto", "confounding": "remove"}
    fit_table("demo", {"table": "breast-cancer", **usual, **ctx.params})


@command(
    "fitonce evaluate iris.csv -t species --repeats 10",
    "fitonce evaluate eeg.csv -t stimulus --group subject --model lssvm --alpha 1",
)
def evaluate(
    ctx: typer.Context,
    table: TableFile,
    target: Target,
    task: Task = "auto",
    group: Group = None,
    weight: Weight = None,
    confound: Confound = None,
    drop: Drop = None,
    keep: Keep = None,
    categorical: Categorical = None,
    missing: Missing = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    effort: Effort = "default",
    model: Model = None,
    kernel: Kernel = "auto",
    gamma: Gamma = "tune",
    alpha: Alpha = "tune",
    confounding: Confounding = "remove",
    landmarks: Landmarks = "auto",
    cv: Folds = None,
    repeats: Repeats = 1,
    permutations: Permutations = "0",
    random_state: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cross-validate a model without saving it (nested, repeated, grouped).

    The interval is that of nested cross-validation (Bates, Hastie and Tibshirani).
    """
    from .run import evaluate_table

    evaluate_table(ctx.params)


@command(
    "fitonce compare iris.csv -t species",
    "fitonce compare iris.csv -t species --models rbf,linear,forest,baseline --out models.png",
    "fitonce compare eeg.csv -t stimulus --group subject --models rbf,linear --repeats 10",
)
def compare(
    ctx: typer.Context,
    table: TableFile,
    target: Target,
    task: Task = "auto",
    group: Group = None,
    confound: Confound = None,
    drop: Drop = None,
    keep: Keep = None,
    categorical: Categorical = None,
    missing: Missing = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    models: Models = "rbf,linear,forest",
    cv: Folds = None,
    repeats: Repeats = 5,
    random_state: Seed = 0,
    out: Annotated[
        str | None, written("File for a plot of the differences: .png, .svg or .pdf.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare several models on the same held-out rows, with all differences between them.

    Kernel models are tuned in every training set. The interval of a difference is the corrected
    resampled t interval of Nadeau and Bengio. A second p-value comes from sign flips of rows (or
    groups).
    """
    from .run import compare_table

    compare_table(ctx.params)


@command(
    "fitonce permute iris.csv -t species",
    "fitonce permute eeg.csv -t stimulus --group subject --permutations 1999",
    "fitonce permute iris.csv -t species --statistic same --permutations 199",
)
def permute(
    ctx: typer.Context,
    table: TableFile,
    target: Target,
    task: Task = "auto",
    group: Group = None,
    confound: Confound = None,
    drop: Drop = None,
    keep: Keep = None,
    categorical: Categorical = None,
    missing: Missing = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    effort: Effort = "default",
    model: Model = None,
    kernel: Kernel = "auto",
    gamma: Gamma = "tune",
    alpha: Alpha = "tune",
    confounding: Confounding = "remove",
    permutations: Annotated[int, option(CHECK, "Number of permutations.", min=1)] = 999,
    statistic: Annotated[
        str,
        option(
            CHECK,
            "quick: kernel width from the spread of the features; same: tuned for every "
            "permutation.",
        ),
    ] = "quick",
    permute: Annotated[
        str | None,
        option(
            CHECK,
            "within-folds, resplit or free; by default a mode that is valid for the folds.",
            "--mode",
        ),
    ] = None,
    exchange: Annotated[
        str | None, option(CHECK, "What is exchanged: rows, within, whole, sign or shift.")
    ] = None,
    most_rows: Annotated[
        int, option(CHECK, "Test at most this many rows, drawn at random.", "--rows", min=10)
    ] = 2000,
    checkpoint: Annotated[
        str | None, option(CHECK, "File from which to resume after a stop.")
    ] = None,
    cv: Folds = None,
    random_state: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test with permutations whether the features carry information about the target.

    The labels are permuted and the model is cross-validated again, hundreds of times. Labels are
    permuted only in ways that the folds and the groups allow, so that the p-value is valid.
    """
    from .run import permute_table

    permute_table(ctx.params)


@command(
    "fitonce predict iris-fitonce.skops new.csv > labels.csv",
    "fitonce predict iris-fitonce.skops new.parquet --keep id --out labels.parquet",
    "cat new.csv | fitonce predict iris-fitonce.skops -",
)
def predict(
    ctx: typer.Context,
    model: ModelFile,
    rows: Rows,
    out: Annotated[str | None, written(TABLE_OUT)] = None,
    keep: Annotated[
        list[str] | None,
        column(
            "Column of ROWS to copy next to the predictions, instead of the identifier; repeat for "
            "more."
        ),
    ] = None,
    missing: Missing = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
) -> None:
    """Predict new rows: labels with probabilities, or numbers.

    Columns are matched by name, in any order. Columns that the model does not use are ignored. The
    identifier column of the training table, if there is one, is copied next to the predictions.
    """
    from .run import predict_rows

    predict_rows(ctx.params)


@command(
    "fitonce export iris-fitonce.skops",
    "fitonce export iris-fitonce.skops --rows iris.csv --out iris.onnx",
)
def export(
    ctx: typer.Context,
    model: ModelFile,
    out: Annotated[
        str | None, written("The ONNX file; by default MODEL with the ending .onnx.")
    ] = None,
    rows: Annotated[
        str | None, option(CHECK, "Table on which to measure the difference from the model.")
    ] = None,
    dtype: Annotated[
        str, option(OUTPUT, "float32 or float64: type of the inputs and outputs of the graph.")
    ] = "float32",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Export a model to ONNX, for use without Python.

    The command runs the graph next to the model and reports the largest difference. It refuses a
    graph that differs by more than 1e-6.
    """
    from .run import export_model

    export_model(ctx.params)


@command(
    "fitonce report iris-fitonce.skops iris.csv",
    "fitonce report iris-fitonce.skops iris.csv --no-data --out page.html",
)
def report(
    ctx: typer.Context,
    model: ModelFile,
    table: TableFile,
    group: Group = None,
    weight: Weight = None,
    missing: Missing = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    cv: Folds = None,
    repeats: Repeats = 1,
    permutations: Permutations = "auto",
    random_state: Seed = 0,
    data: Data = True,
    out: Annotated[
        str | None, written("The HTML file; by default MODEL with the ending .html.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the HTML report of a model and its table: one file that works offline."""
    from .run import report_page

    report_page(ctx.params)
