"""The commands of `fitonce`.

What they do is in `work`, imported when a command runs, so that help and completion are quick.
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
    check_option,
    model_option,
    output_option,
    unfolded,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Kernel Fisher discriminants, LS-SVM and kernel ridge regression: a table in, an answer "
    "out.",
    epilog=(
        "[bold]Start here[/]\n\n"
        "[cyan]fitonce demo[/]: an answer for data that come with the program\n\n"
        "[cyan]fitonce fit table.csv --target species[/]: the same for a table of yours, and a "
        "model file\n\n"
        "[cyan]fitonce predict table-fitonce.skops new.csv[/]: labels and probabilities of new "
        "rows\n\n"
        "Each command has examples: [cyan]fitonce fit --help[/]"
    ),
)


UNTESTED = Check(permutations="0")
REPEATED = Check(repeats=5)
EVERY_ROW = Settings(landmarks="none")


def command(*examples: str, hidden: Collection[str] = ()) -> Callable[..., Callable[..., None]]:
    """Add a command whose help ends in examples; `hidden` fields of its groups are no options."""
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
            "--version", help="Show the version and stop.", callback=show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Nothing but --version."""


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
    """Fit a model to a table, tell how good it is on rows it has not seen, and write it to a file.

    Kernel width and regularisation are tuned. The accuracy comes from nested cross-validation:
    tuning, scaling and imputation are done anew in every fold. Beside it stand its interval, the
    baseline, a permutation p-value, calibration and what was chosen.

    The model goes to TABLE-fitonce.skops and a page to TABLE-fitonce.html, in the current folder or
    the one that --out names.
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
    """Show what `fit` does, on data that come with the program.

    569 biopsies, benign or malignant, 30 measurements each.
    """
    from .data import demo_table
    from .work import fit_table

    screen, request = shown.screen, Request("breast-cancer", "diagnosis")
    fit_table("demo", screen, demo_table, request, Settings(), check, results)
    screen.aside("The same for a table of yours: fitonce fit table.csv --target COLUMN")


@command(
    "fitonce evaluate iris.csv -t species --repeats 10",
    "fitonce evaluate iris.csv -t species --repeats 10 --versus kernel=linear",
    "fitonce evaluate eeg.csv -t stimulus --group subject --versus model=lssvm,alpha=1",
)
def evaluate(
    *,
    request: Request,
    reading: Reading,
    settings: Settings,
    versus: Annotated[
        str | None,
        check_option(
            "Other settings to compare with on the same folds, such as kernel=linear,alpha=1."
        ),
    ] = None,
    check: Check = UNTESTED,
    shown: Shown,
) -> None:
    """Cross-validate a model without writing one: nested, repeated, grouped; or two settings side
    by side.

    With one repeat the interval is Wilson's on the pooled held-out labels, with more the corrected
    resampled t of Nadeau and Bengio. --versus assesses a second setting on the same folds and tests
    the difference by the corrected resampled t test on the paired scores.
    """
    from .work import evaluate_table

    if versus is not None:
        settings.changed(versus)  # refuses what is no setting before the table is read
    source = partial(request.read, reading)
    evaluate_table(shown.screen, source, request, settings, versus, check)


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
            "Two or more of tune (the kernel is chosen), rbf, exponential, matern32, matern52, "
            "laplacian, linear, poly, cosine, forest and baseline, with commas."
        ),
    ] = "rbf,linear,forest",
    check: Check = REPEATED,
    out: Annotated[
        str | None, output_option("A picture of the differences: .png, .svg or .pdf.", *OUT)
    ] = None,
    shown: Shown,
) -> None:
    """Is one model better than another? Several models on the same held-out rows, and all their
    differences.

    Kernel models are tuned on every training set. The interval of a difference is the corrected
    resampled t of Nadeau and Bengio; a second p-value comes from sign flips of rows (or groups).
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
    """Test by permutations whether the features say anything about the target.

    The labels are permuted and the model is cross-validated again, hundreds of times. Labels move
    only as the folds and the groups allow, so that the p-value keeps its meaning.
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
            help="Column of ROWS to copy beside the predictions, instead of the identifier; "
            "repeat for more."
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            help="Also intervals that hold this share of new rows, such as 0.9 (sets of classes, "
            "for labels); needs --trained-on."
        ),
    ] = None,
    trained_on: Annotated[
        str | None,
        typer.Option(help="The table that the model was fitted on, for --interval."),
    ] = None,
    reading: Reading,
    shown: Shown,
) -> None:
    """Predict new rows: labels and probabilities, or numbers.

    Columns are found by name, in any order; columns that the model does not know are ignored. A
    column that named the rows of the model's table (an id) is copied beside the predictions.
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
        str | None, output_option("The ONNX file; by default MODEL with that ending.", *OUT)
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Table on which to measure the difference from the model."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="float32 or float64: inputs and outputs of the graph.")
    ] = "float32",
    shown: Shown,
) -> None:
    """Write a model as ONNX, for programs that know nothing of Python.

    The graph is run beside the model and the largest difference is reported; a graph that differs
    by more than 1e-6 is refused.
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
        bool, output_option("Whether the rows go into the page.", "--data/--no-data")
    ] = True,
    out: Annotated[
        str | None, output_option("The HTML file; by default MODEL with that ending.", *OUT)
    ] = None,
    shown: Shown,
) -> None:
    """Write the HTML page of a model and the table it was fitted on: one file, no network."""
    from .modelfiles import report_page

    request = Request(table, "", group=group, weight=weight)
    report_page(shown.screen, model, request, reading, check, out, data)


@command(
    "fitonce datasets",
    "fitonce datasets torus --rows 500 --out torus.csv",
    "fitonce datasets iris | fitonce fit - -t species",
)
def datasets(
    *,
    name: Annotated[
        str | None, typer.Argument(help="The set to write; without it, all are listed.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows to draw, for sets that are drawn.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    out: Annotated[str | None, output_option(TABLE_OUT, *OUT)] = None,
    shown: Shown,
) -> None:
    """List the data sets that come with the program, or write one as a table."""
    from .data import list_datasets, write_dataset

    if name is None:
        list_datasets(shown.screen)
    else:
        write_dataset(shown.screen, name, rows, seed, out)
