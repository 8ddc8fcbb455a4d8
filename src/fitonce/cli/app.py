"""The commands of `fitonce`.

What they do is in `work`, imported when a command runs, so that help and completion are quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .errors import UserError, careful
from .options import (
    Alpha,
    Categorical,
    Drop,
    Folds,
    Gamma,
    Group,
    Header,
    Json,
    Keep,
    Kernel,
    Landmarks,
    Model,
    ModelFile,
    Out,
    Page,
    Permutations,
    Quiet,
    Repeats,
    Seconds,
    Seed,
    Separator,
    TableFile,
    Target,
    Task,
    Weight,
    check,
    output,
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


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "[bold]Examples[/]\n\n" + "\n\n".join(f"[cyan]{line}[/]" for line in lines)


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


@app.command(
    epilog=examples(
        "fitonce fit iris.csv --target species",
        "fitonce fit trials.parquet -t outcome --group patient --weight n --out results",
        "fitonce fit houses.csv -t price --kernel linear --json > houses.json",
    )
)
@careful
def fit(
    table: TableFile, target: Target, task: Task = "auto", group: Group = None, weight: Weight = None, drop: Drop = None, keep: Keep = None,
    categorical: Categorical = None, separator: Separator = None, header: Header = None, model: Model = None, kernel: Kernel = "rbf",
    gamma: Gamma = "tune", alpha: Alpha = "tune", landmarks: Landmarks = "auto", folds: Folds = None, repeats: Repeats = 1,
    permutations: Permutations = "auto", seconds: Seconds = 10.0, seed: Seed = 0, out: Out = None, page: Page = True, json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Fit a model to a table, tell how good it is on rows it has not seen, and write it to a file.

    Kernel width and regularisation are tuned. The accuracy comes from nested cross-validation:
    tuning, scaling and imputation are done anew in every fold. Beside it stand its interval, the
    baseline, a permutation p-value, calibration and what was chosen.

    The model goes to TABLE-fitonce.skops and a page to TABLE-fitonce.html, in the current folder or
    the one that --out names.
    """
    from .models import Settings
    from .screen import Screen
    from .work import Check, Request, count_of, fit_table

    request = Request(
        table, target, task, group, weight, drop, keep, categorical, separator, header
    )
    check = Check(folds, repeats, count_of(permutations), seconds, seed)
    data = request.read()
    settings = Settings(model, kernel, gamma, alpha, "function", landmarks)
    fit_table(
        "fit",
        Screen(quiet=quiet, as_json=json),
        data,
        request.design(data),
        settings,
        check,
        out,
        page,
    )


@app.command(epilog=examples("fitonce demo", "fitonce demo --out results --json"))
@careful
def demo(
    out: Out = None,
    seconds: Seconds = 5.0,
    seed: Seed = 0,
    page: Page = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what `fit` does, on data that come with the program.

    569 biopsies, benign or malignant, 30 measurements each.
    """
    from .data import demo_table
    from .models import Settings
    from .screen import Screen
    from .work import Check, Request, fit_table

    screen = Screen(quiet=quiet, as_json=json)
    data = demo_table()
    parts = Request("demo", "diagnosis").design(data)
    fit_table("demo", screen, data, parts, Settings(), Check(seconds=seconds, seed=seed), out, page)
    screen.aside("The same for a table of yours: fitonce fit table.csv --target COLUMN")


@app.command(
    epilog=examples(
        "fitonce evaluate iris.csv -t species --repeats 10",
        "fitonce evaluate iris.csv -t species --repeats 10 --versus kernel=linear",
        "fitonce evaluate eeg.csv -t stimulus --group subject --versus model=lssvm,alpha=1",
    )
)
@careful
def evaluate(
    table: TableFile, target: Target, task: Task = "auto", group: Group = None, weight: Weight = None, drop: Drop = None, keep: Keep = None,
    categorical: Categorical = None, separator: Separator = None, header: Header = None, model: Model = None, kernel: Kernel = "rbf",
    gamma: Gamma = "tune", alpha: Alpha = "tune", landmarks: Landmarks = "auto",
    versus: Annotated[str | None, check("Other settings to compare with on the same folds, such "
                                        "as kernel=linear,alpha=1.")] = None,
    folds: Folds = None, repeats: Repeats = 1, permutations: Permutations = "0", seconds: Seconds = 10.0, seed: Seed = 0,
    json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Cross-validate a model without writing one: nested, repeated, grouped; or two settings side
    by side.

    With one repeat the interval is Wilson's on the pooled held-out labels, with more the corrected
    resampled t of Nadeau and Bengio. --versus assesses a second setting on the same folds and tests
    the difference by the corrected resampled t test on the paired scores.
    """
    from .models import Settings
    from .screen import Screen
    from .work import Check, Request, count_of, evaluate_table

    request = Request(
        table, target, task, group, weight, drop, keep, categorical, separator, header
    )
    check = Check(folds, repeats, count_of(permutations), seconds, seed)
    evaluate_table(
        Screen(quiet=quiet, as_json=json),
        request,
        Settings(model, kernel, gamma, alpha, "function", landmarks),
        versus,
        check,
    )


@app.command(
    epilog=examples(
        "fitonce permute iris.csv -t species",
        "fitonce permute eeg.csv -t stimulus --group subject --permutations 1999",
        "fitonce permute iris.csv -t species --statistic same --permutations 199",
    )
)
@careful
def permute(
    table: TableFile, target: Target, task: Task = "auto", group: Group = None, drop: Drop = None, keep: Keep = None,
    categorical: Categorical = None, separator: Separator = None, header: Header = None, model: Model = None, kernel: Kernel = "rbf",
    gamma: Gamma = "tune", alpha: Alpha = "tune",
    permutations: Annotated[int, check("Number of permutations.", 1)] = 999,
    statistic: Annotated[str, check("quick: kernel width from the spread of the features; same: "
                                    "tuned again each time.")] = "quick",
    mode: Annotated[str | None, check("within-folds, resplit or free; by default what is valid "
                                      "with the folds.")] = None,
    exchange: Annotated[str | None, check("What trades places: rows, within, whole, sign or "
                                          "shift.")] = None,
    rows: Annotated[int, check("Test a random sample of so many rows, if there are more.", 10)] = 2000,
    checkpoint: Annotated[str | None, check("File to go on from after an interruption.")] = None,
    folds: Folds = None, seed: Seed = 0, json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Test by permutations whether the features say anything about the target.

    The labels are permuted and the model is cross-validated again, hundreds of times. Labels move
    only as the folds and the groups allow, so that the p-value keeps its meaning.
    """
    from .models import Settings
    from .screen import Screen
    from .work import Request, permute_table

    if statistic not in ("quick", "same"):
        raise UserError(f"--statistic must be quick or same, got {statistic!r} instead.")
    request = Request(table, target, task, group, None, drop, keep, categorical, separator, header)
    permute_table(
        Screen(quiet=quiet, as_json=json), request, Settings(model, kernel, gamma, alpha, "function", "none"), permutations=permutations,
        statistic=statistic, mode=mode, exchange=exchange, rows=rows, folds=folds, checkpoint=checkpoint, seed=seed,
    )  # fmt: skip


@app.command(
    epilog=examples(
        "fitonce predict iris-fitonce.skops new.csv > labels.csv",
        "fitonce predict iris-fitonce.skops new.parquet --keep id --out labels.parquet",
        "cat new.csv | fitonce predict iris-fitonce.skops -",
    )
)
@careful
def predict(
    model: ModelFile,
    rows: Annotated[str, typer.Argument(help="Table of new rows; - reads CSV from standard "
                                             "input.", metavar="ROWS")],
    out: Annotated[str | None, output("File: .csv, .tsv, .parquet or .arrow; standard output if "
                                      "not given.", "--out", "-o")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column of ROWS to copy beside the "
                                                        "predictions; repeat for more.")] = None,
    separator: Separator = None, header: Header = None, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Predict new rows: labels and probabilities, or numbers.

    Columns are found by name, in any order; columns that the model does not know are ignored.
    """
    from .screen import Screen
    from .work import predict_rows

    predict_rows(Screen(quiet=quiet), model, rows, out, keep or (), separator, header)


@app.command(
    epilog=examples(
        "fitonce export iris-fitonce.skops",
        "fitonce export iris-fitonce.skops --rows iris.csv --out iris.onnx",
    )
)
@careful
def export(
    model: ModelFile,
    out: Annotated[str | None, output("The ONNX file; by default MODEL with that ending.", "--out", "-o")] = None,
    rows: Annotated[str | None, typer.Option(help="Table on which to measure the difference from "
                                                  "the model.")] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64: inputs and outputs of the "
                                            "graph.")] = "float32",
    json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write a model as ONNX, for programs that know nothing of Python.

    The graph is run beside the model and the largest difference is reported; a graph that differs
    by more than 1e-6 is refused.
    """
    from .screen import Screen
    from .work import export_model

    export_model(Screen(quiet=quiet, as_json=json), model, out, rows, dtype)


@app.command(
    epilog=examples(
        "fitonce report iris-fitonce.skops iris.csv",
        "fitonce report iris-fitonce.skops iris.csv --no-data --out page.html",
    )
)
@careful
def report(
    model: ModelFile, table: TableFile, group: Group = None, weight: Weight = None, separator: Separator = None, header: Header = None,
    folds: Folds = None, repeats: Repeats = 1, permutations: Permutations = "auto", seconds: Seconds = 10.0, seed: Seed = 0,
    data: Annotated[bool, output("Whether the rows go into the page.", "--data/--no-data")] = True,
    out: Annotated[str | None, output("The HTML file; by default MODEL with that ending.", "--out", "-o")] = None,
    json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write the HTML page of a model and the table it was fitted on: one file, no network."""
    from .screen import Screen
    from .work import Check, Request, count_of, report_page

    request = Request(table, "", "auto", group, weight, None, None, None, separator, header)
    report_page(
        Screen(quiet=quiet, as_json=json),
        model,
        request,
        out,
        Check(folds, repeats, count_of(permutations), seconds, seed),
        data,
    )


@app.command(
    epilog=examples(
        "fitonce datasets",
        "fitonce datasets torus --rows 500 --out torus.csv",
        "fitonce datasets iris | fitonce fit - -t species",
    )
)
@careful
def datasets(
    name: Annotated[str | None, typer.Argument(help="The set to write; without it, all are "
                                                    "listed.")] = None,
    rows: Annotated[int, typer.Option(help="Rows to draw, for sets that are drawn.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    out: Annotated[str | None, output("File: .csv, .tsv, .parquet or .arrow; standard output if "
                                      "not given.", "--out", "-o")] = None,
    json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """List the data sets that come with the program, or write one as a table."""
    from .data import list_datasets, write_dataset
    from .screen import Screen

    screen = Screen(quiet=quiet, as_json=json)
    if name is None:
        list_datasets(screen)
    else:
        write_dataset(screen, name, rows, seed, out)


__all__ = ["app"]
