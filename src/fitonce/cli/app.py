"""The commands of `fitonce` and their options.

The work is done in `run` and `saved`, which are imported only when a command runs. This keeps help
and completion fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer

from . import options as o
from .words import careful

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


def command(work: str, *examples: str) -> Callable[[Callable[..., None]], None]:
    """Add a command whose help ends with examples. The decorated function declares the options and
    the help; `work` names the function, such as "run.fit_table", that gets the options by name.
    """
    ending = "[bold]Examples[/]\n\n" + "\n\n".join(f"[cyan]{line}[/]" for line in examples)
    module, name = work.split(".")

    def added(declared: Callable[..., None]) -> None:
        @wraps(declared)
        def call(**given: Any) -> None:
            getattr(import_module(f".{module}", __package__), name)(given)

        text = re.sub(r"(?<!\n)\n(?!\n)", " ", getdoc(declared) or "")  # lines of any width
        app.command(epilog=ending, help=text)(careful(call))

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
    "run.fit_table",
    "fitonce fit iris.csv --target species",
    "fitonce fit trials.parquet -t outcome --group patient --weight n --out results",
    "fitonce fit houses.csv -t price --kernel linear --json > houses.json",
)
def fit(
    table: o.TableFile,
    target: o.Target,
    task: o.Task = "auto",
    group: o.Group = None,
    time: o.Time = None,
    weight: o.Weight = None,
    confound: o.Confound = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    categorical: o.Categorical = None,
    ordered: o.Ordered = None,
    log_target: o.LogTarget = False,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    effort: o.Effort = "default",
    model: o.Model = None,
    kernel: o.Kernel = "auto",
    gamma: o.Gamma = "tune",
    alpha: o.Alpha = "tune",
    priors: o.Priors = None,
    confounding: o.Confounding = "remove",
    landmarks: o.Landmarks = "auto",
    cv: o.Folds = None,
    repeats: o.Repeats = 1,
    score: o.Score = "auto",
    permutations: o.Permutations = "auto",
    random_state: o.Seed = 0,
    out: o.Out = None,
    page: o.Page = True,
    data: o.Data = True,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit a model to a table, estimate how well it predicts new rows, and save it.

    The kernel width and the regularization are tuned. The accuracy comes from nested
    cross-validation: tuning, scaling and imputation are repeated in every fold. The output also
    gives a confidence interval, the baseline, a permutation p-value, the calibration and the chosen
    settings.

    The model is written to TABLE-fitonce.skops and the report to TABLE-fitonce.html, in the current
    folder or in the folder given by --out.
    """


@command("run.fit_demo", "fitonce demo", "fitonce demo --out results --json")
def demo(
    random_state: o.Seed = 0,
    out: o.Out = None,
    page: o.Page = True,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run `fit` on example data.

    The data are 569 biopsies, benign or malignant, with 30 measurements each.
    """


@command(
    "run.evaluate_table",
    "fitonce evaluate iris.csv -t species --repeats 10",
    "fitonce evaluate eeg.csv -t stimulus --group subject --model lssvm --alpha 1",
    "fitonce evaluate weather.csv -t rain --time date",
)
def evaluate(
    table: o.TableFile,
    target: o.Target,
    task: o.Task = "auto",
    group: o.Group = None,
    time: o.Time = None,
    weight: o.Weight = None,
    confound: o.Confound = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    categorical: o.Categorical = None,
    ordered: o.Ordered = None,
    log_target: o.LogTarget = False,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    effort: o.Effort = "default",
    model: o.Model = None,
    kernel: o.Kernel = "auto",
    gamma: o.Gamma = "tune",
    alpha: o.Alpha = "tune",
    priors: o.Priors = None,
    confounding: o.Confounding = "remove",
    landmarks: o.Landmarks = "auto",
    cv: o.Folds = None,
    repeats: o.Repeats = 1,
    score: o.Score = "auto",
    permutations: o.Permutations = "0",
    random_state: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Cross-validate a model without saving it (nested, repeated, grouped).

    The interval is that of nested cross-validation (Bates, Hastie and Tibshirani).
    """


@command(
    "run.compare_table",
    "fitonce compare iris.csv -t species",
    "fitonce compare iris.csv -t species --models rbf,linear,forest,baseline --out models.png",
    "fitonce compare eeg.csv -t stimulus --group subject --models rbf,linear --repeats 10",
)
def compare(
    table: o.TableFile,
    target: o.Target,
    task: o.Task = "auto",
    group: o.Group = None,
    time: o.Time = None,
    confound: o.Confound = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    categorical: o.Categorical = None,
    ordered: o.Ordered = None,
    log_target: o.LogTarget = False,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    models: Annotated[
        str,
        o.setting(
            o.MODEL,
            "Two or more of tune (the kernel is tuned), rbf, exponential, matern32, matern52, "
            "laplacian, linear, poly, cosine, forest and baseline, separated by commas.",
        ),
    ] = "rbf,linear,forest",
    cv: o.Folds = None,
    repeats: o.Repeats = 5,
    random_state: o.Seed = 0,
    out: Annotated[
        str | None, o.written("File for a plot of the differences: .png, .svg or .pdf.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare several models on the same held-out rows, with all differences between them.

    Kernel models are tuned in every training set. p-values are corrected for
    the number of differences (Holm).
    """


@command(
    "run.permute_table",
    "fitonce permute iris.csv -t species",
    "fitonce permute eeg.csv -t stimulus --group subject --permutations 1999",
    "fitonce permute iris.csv -t species --statistic same --permutations 199",
)
def permute(
    table: o.TableFile,
    target: o.Target,
    task: o.Task = "auto",
    group: o.Group = None,
    time: o.Time = None,
    confound: o.Confound = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    categorical: o.Categorical = None,
    ordered: o.Ordered = None,
    log_target: o.LogTarget = False,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    effort: o.Effort = "default",
    model: o.Model = None,
    kernel: o.Kernel = "auto",
    gamma: o.Gamma = "tune",
    alpha: o.Alpha = "tune",
    priors: o.Priors = None,
    confounding: o.Confounding = "remove",
    permutations: Annotated[int, o.setting(o.CHECK, "Number of permutations.", min=1)] = 999,
    statistic: Annotated[
        str,
        o.setting(
            o.CHECK,
            "quick: tuned for every permutation among fewer settings; same: among the model's own.",
        ),
    ] = "quick",
    permute: Annotated[
        str | None,
        o.setting(
            o.CHECK,
            "within-folds, resplit or free; by default a mode that is valid for the folds.",
            "--mode",
        ),
    ] = None,
    exchange: Annotated[
        str | None, o.setting(o.CHECK, "What is exchanged: rows, within, whole, sign or shift.")
    ] = None,
    most_rows: Annotated[
        int, o.setting(o.CHECK, "Test at most this many rows, drawn at random.", "--rows", min=10)
    ] = 2000,
    checkpoint: Annotated[
        str | None, o.setting(o.CHECK, "File from which to resume after a stop.")
    ] = None,
    cv: o.Folds = None,
    random_state: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Test with permutations whether the features carry information about the target.

    The labels are permuted and the model is cross-validated again, hundreds of times. Labels are
    permuted only in ways that the folds and the groups allow, so that the p-value is valid.
    """


@command(
    "saved.validate_model",
    "fitonce validate iris-fitonce.skops other-site.csv",
    "fitonce validate eeg-fitonce.skops second-study.csv --group subject",
)
def validate(
    model: o.ModelFile,
    table: o.TableFile,
    group: o.Group = None,
    weight: o.Weight = None,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Score a saved model on a second table that has the target (external validation).

    The table must have the columns of the first. Rows that the model was fitted on are named.
    """


@command(
    "saved.predict_rows",
    "fitonce predict iris-fitonce.skops new.csv > labels.csv",
    "fitonce predict iris-fitonce.skops new.parquet --keep id --out labels.parquet",
    "cat new.csv | fitonce predict iris-fitonce.skops -",
    "fitonce predict houses-fitonce.skops new.csv --interval 0.9",
)
def predict(
    model: o.ModelFile,
    rows: Annotated[
        str,
        typer.Argument(help="Table of new rows; - reads CSV from standard input.", metavar="ROWS"),
    ],
    keep: Annotated[
        list[str] | None,
        o.column(
            "Column of ROWS to copy next to the predictions, instead of the identifier; repeat for "
            "more."
        ),
    ] = None,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    out: Annotated[
        str | None, o.written("File: .csv, .tsv, .parquet or .arrow; standard output if not given.")
    ] = None,
    interval: Annotated[
        float | None,
        o.setting(
            o.OUTPUT,
            "Also give intervals (for classes: sets) that contain the truth for this share of new "
            "rows, such as 0.9.",
        ),
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Predict new rows: labels with probabilities, or numbers.

    Columns are matched by name, in any order. Columns that the model does not use are ignored. The
    identifier column of the training table, if there is one, is copied next to the predictions.
    """


@command(
    "saved.export_model",
    "fitonce export iris-fitonce.skops",
    "fitonce export iris-fitonce.skops --rows iris.csv --out iris.onnx",
)
def export(
    model: o.ModelFile,
    out: Annotated[
        str | None, o.written("The ONNX file; by default MODEL with the ending .onnx.")
    ] = None,
    rows: Annotated[
        str | None, o.setting(o.CHECK, "Table on which to measure the difference from the model.")
    ] = None,
    dtype: Annotated[
        str, o.setting(o.OUTPUT, "float32 or float64: type of the inputs and outputs of the graph.")
    ] = "float32",
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Export a model to ONNX, for use without Python.

    The command runs the graph next to the model and reports the largest difference. It refuses a
    graph that differs by more than 1e-6.
    """


@command(
    "saved.report_page",
    "fitonce report iris-fitonce.skops iris.csv",
    "fitonce report iris-fitonce.skops iris.csv --no-data --out page.html",
)
def report(
    model: o.ModelFile,
    table: o.TableFile,
    group: o.Group = None,
    time: o.Time = None,
    weight: o.Weight = None,
    missing: o.Missing = None,
    separator: o.Separator = None,
    header: o.Header = None,
    sheet: o.Sheet = None,
    cv: o.Folds = None,
    repeats: o.Repeats = 1,
    score: o.Score = "auto",
    permutations: o.Permutations = "auto",
    random_state: o.Seed = 0,
    data: o.Data = True,
    out: Annotated[
        str | None, o.written("The HTML file; by default MODEL with the ending .html.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write the HTML report of a model and its table: one file that works offline."""
