"""The commands of `fitonce`.

The work is done in `work`, which is imported only when a command runs. This keeps help and
completion fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Annotated

import typer

from .errors import careful
from .options import (
    OUT,
    TABLE_OUT,
    Check,
    Group,
    ModelFile,
    Permuting,
    Reading,
    Request,
    ResultFiles,
    Settings,
    Shown,
    TableFile,
    Weight,
    model_option,
    output_option,
    unfolded,
)

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


UNTESTED = Check(permutations="0")
REPEATED = Check(repeats=5)
EVERY_ROW = Settings(landmarks="none")


def command(*examples: str, hidden: Collection[str] = ()) -> Callable[..., Callable[..., None]]:
    """Add a command whose help ends with examples; `hidden` lists fields that get no option."""
    ending = "[bold]Examples[/]\n\n" + "\n\n".join(f"[cyan]{line}[/]" for line in examples)

    def added(function: Callable[..., None]) -> Callable[..., None]:
        return app.command(epilog=ending)(careful(unfolded(function, hidden)))

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
    request: Request,
    reading: Reading,
    settings: Settings,
    check: Check,
    results: ResultFiles,
    shown: Shown,
) -> None:
    """Fit a model to a table, estimate how well it predicts new rows, and save it.

    The kernel width and the regularization are tuned. The accuracy comes from nested
    cross-validation: tuning, scaling and imputation are repeated in every fold. The output also
    gives a confidence interval, the baseline, a permutation p-value, the calibration and the chosen
    settings.

    The model is written to TABLE-fitonce.skops and the report to TABLE-fitonce.html, in the current
    folder or in the folder given by --out.
    """
    from .work import fit_table

    source = partial(request.read, reading)
    fit_table("fit", shown.screen, source, request, settings, check, results)


@command(
    "fitonce demo",
    "fitonce demo --out results --json",
    hidden=("cv", "repeats", "permutations"),
)
def demo(*, results: ResultFiles, check: Check, shown: Shown) -> None:
    """Run `fit` on example data.

    The data are 569 biopsies, benign or malignant, with 30 measurements each.
    """
    from .data import demo_table
    from .work import fit_table

    screen, request = shown.screen, Request("breast-cancer", "diagnosis")
    fit_table("demo", screen, demo_table, request, Settings(), check, results)
    screen.aside("To analyze your own table: fitonce fit table.csv --target COLUMN")


@command(
    "fitonce evaluate iris.csv -t species --repeats 10",
    "fitonce evaluate eeg.csv -t stimulus --group subject",
)
def evaluate(
    *,
    request: Request,
    reading: Reading,
    settings: Settings,
    check: Check = UNTESTED,
    shown: Shown,
) -> None:
    """Cross-validate a model without saving it (nested, repeated, grouped).

    The interval is that of nested cross-validation (Bates, Hastie and Tibshirani).
    """
    from .work import evaluate_table

    source = partial(request.read, reading)
    evaluate_table(shown.screen, source, request, settings, check)


@command(
    "fitonce compare iris.csv -t species",
    "fitonce compare iris.csv -t species --models rbf,linear,forest,baseline --out models.png",
    "fitonce compare eeg.csv -t stimulus --group subject --models rbf,linear --repeats 10",
    hidden=("weight", "permutations"),
)
def compare(
    *,
    request: Request,
    reading: Reading,
    models: Annotated[
        str,
        model_option(
            "Two or more of tune (the kernel is tuned), rbf, exponential, matern32, matern52, "
            "laplacian, linear, poly, cosine, forest and baseline, separated by commas."
        ),
    ] = "rbf,linear,forest",
    check: Check = REPEATED,
    out: Annotated[
        str | None, output_option("File for a plot of the differences: .png, .svg or .pdf.", *OUT)
    ] = None,
    shown: Shown,
) -> None:
    """Compare several models on the same held-out rows, with all differences between them.

    Kernel models are tuned in every training set. The interval of a difference is the corrected
    resampled t interval of Nadeau and Bengio.
    """
    from .comparing import compare_table, names_of

    source = partial(request.read, reading)
    compare_table(shown.screen, source, request, names_of(models), check, out)


@command(
    "fitonce permute iris.csv -t species",
    "fitonce permute eeg.csv -t stimulus --group subject --permutations 1999",
    "fitonce permute iris.csv -t species --statistic same --permutations 199",
    hidden=("weight", "landmarks"),
)
def permute(
    *,
    request: Request,
    reading: Reading,
    settings: Settings = EVERY_ROW,
    permuting: Permuting,
    shown: Shown,
) -> None:
    """Test with permutations whether the features carry information about the target.

    The labels are permuted and the model is cross-validated again, hundreds of times. Labels are
    permuted only in ways that the folds and the groups allow, so that the p-value is valid.
    """
    from .work import permute_table

    source = partial(request.read, reading)
    permute_table(shown.screen, source, request, settings, permuting)


@command(
    "fitonce predict iris-fitonce.skops new.csv > labels.csv",
    "fitonce predict iris-fitonce.skops new.parquet --keep id --out labels.parquet",
    "cat new.csv | fitonce predict iris-fitonce.skops -",
    hidden=("json",),
)
def predict(
    *,
    model: ModelFile,
    rows: Annotated[
        str,
        typer.Argument(help="Table of new rows; - reads CSV from standard input.", metavar="ROWS"),
    ],
    out: Annotated[str | None, output_option(TABLE_OUT, *OUT)] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of ROWS to copy next to the predictions, instead of the identifier; "
            "repeat for more."
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            help="Also give prediction intervals (sets of classes for labels) with this coverage, "
            "such as 0.9; needs --trained-on."
        ),
    ] = None,
    trained_on: Annotated[
        str | None,
        typer.Option(help="The table that the model was fitted on; needed for --interval."),
    ] = None,
    reading: Reading,
    shown: Shown,
) -> None:
    """Predict new rows: labels with probabilities, or numbers.

    Columns are matched by name, in any order. Columns that the model does not use are ignored. The
    identifier column of the training table, if there is one, is copied next to the predictions.
    """
    from .modelfiles import predict_rows

    predict_rows(shown.screen, model, rows, reading, keep, out, interval, trained_on)


@command(
    "fitonce export iris-fitonce.skops",
    "fitonce export iris-fitonce.skops --rows iris.csv --out iris.onnx",
)
def export(
    *,
    model: ModelFile,
    out: Annotated[
        str | None, output_option("The ONNX file; by default MODEL with the ending .onnx.", *OUT)
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Table on which to measure the difference from the model."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="float32 or float64: type of the inputs and outputs of the graph.")
    ] = "float32",
    shown: Shown,
) -> None:
    """Export a model to ONNX, for use without Python.

    The command runs the graph next to the model and reports the largest difference. It refuses a
    graph that differs by more than 1e-6.
    """
    from .modelfiles import export_model

    export_model(shown.screen, model, out, rows, dtype)


@command(
    "fitonce report iris-fitonce.skops iris.csv",
    "fitonce report iris-fitonce.skops iris.csv --no-data --out page.html",
)
def report(
    *,
    model: ModelFile,
    table: TableFile,
    group: Group = None,
    weight: Weight = None,
    reading: Reading,
    check: Check,
    data: Annotated[
        bool, output_option("Whether to include the rows in the report.", "--data/--no-data")
    ] = True,
    out: Annotated[
        str | None, output_option("The HTML file; by default MODEL with the ending .html.", *OUT)
    ] = None,
    shown: Shown,
) -> None:
    """Write the HTML report of a model and its table: one file that works offline."""
    from .modelfiles import report_page

    request = Request(table, "", group=group, weight=weight)
    report_page(shown.screen, model, request, reading, check, out, data)
