"""What the commands on a table do: read it, design, assess, fit, save, write the page.

The commands hand over their options by name; every step takes those that it knows (`taken`).
"""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from ..assessment import Assessment, assess, choice_of, compare, render, significance
from ..assessment.assess import warned
from ..assessment.result import summary_of
from ..core.atomic import check_place, is_stream, write_atomically
from ..core.numerical_warnings import caught_warnings
from ..crossval import RefitWarning
from ..estimators.fitted import is_committee
from ..io.contents import skops_io
from ..io.saving import save
from . import show
from .columns import Design, design
from .model import (
    KERNELS,
    LANDMARKS_ABOVE,
    assessed_rows,
    better_kernel,
    chosen_categories,
    compared,
    fit_all,
    pipeline,
    reference,
)
from .show import Screen
from .table import Table, read_table, stem_of
from .words import one_of, refuse, word_or_number

SCORES = {"accuracy": "accuracy", "balanced": "balanced_accuracy", "auc": "roc_auc"}
MOST_OF_ALL = 0.9  # share of a class from which accuracy says little
SMALL = 1000  # rows up to which one BLAS thread is faster than several
COMPARED = (*KERNELS[1:], "forest", "baseline")
PICTURES = (".png", ".svg", ".pdf")
Given = dict[str, Any]  # the options of a command by name


def taken(function: Callable[..., Any], given: Given) -> Given:
    """The options that a function has a parameter for."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in given.items() if name in names}


def screen_of(given: Given) -> Screen:
    return Screen(given["quiet"], given.get("json", False))


def opened(screen: Screen, given: Given) -> Design:
    """The table of a command, read and taken apart."""
    roles = ("target", "group", "time", "weight")
    named = [*(given.get(role) for role in roles), *(given["confound"] or ())]
    with screen.working(f"reading {given['table']}") as bars:
        table = read_table(given["table"], expected=named, **taken(read_table, given))
        bars(0, 0, "looking at the columns")
        return design(**taken(design, given | {"table": table}))


def threads_for(parts: Design) -> Any:
    """Use one BLAS thread for a small table.

    Several threads slow down small matrices, most of all when other programs are running.
    """
    return threadpool_limits(1 if len(parts.y) <= SMALL else None)


def with_permutations(given: Given) -> Given:
    asked = word_or_number(given["permutations"], "permutations", ("auto",), above=-1, kind=int)
    return given | {"permutations": asked}


def modelled(
    command: str, screen: Screen, parts: Design, given: Given
) -> tuple[Any, Design, list[str], Given]:
    """The model of a table, the rows to assess, notes, and the settings of the model; the table is
    described on the screen.
    """
    settings, seed = taken(pipeline, given), given["random_state"]
    estimator, said = pipeline(parts, **settings)
    judged, notes = assessed_rows(parts, seed)
    show.announce(screen, command, parts, [*parts.notes, *notes], given["confounding"])
    is_open = (settings["kernel"], settings["landmarks"]) == ("auto", "auto")
    if is_open and len(parts.y) > LANDMARKS_ABOVE and parts.confounds is None:
        with screen.working("choosing the kernel"), threads_for(parts), caught_warnings():
            settings["kernel"], why = better_kernel(parts, judged, settings, seed)
        screen.remark([why])
        estimator, said = pipeline(parts, **settings)
        notes = [*notes, why]
    screen.remark([f"model: {show.described_model(estimator[-1])}", *said])
    screen.warn(parts.hints)
    return estimator, judged, [*parts.notes, *notes, *said, *parts.hints], settings


def assessed(estimator: Any, parts: Design, given: Given) -> Assessment:
    """The assessment; it contains its warnings, so that Python need not print them."""
    options = parts.row_options | taken(assess, given) | {"cv": parts.folds(given.get("cv"))}
    options["score"] = main_score(parts, given)
    with caught_warnings():
        return assess(estimator, parts.X, parts.y, **options)


def main_score(parts: Design, given: Given) -> str | None:
    """The score that comes first: that of the user, or balanced accuracy where one class has nearly
    all rows, or all classes count alike; None leaves it to `assess`.
    """
    asked = one_of(given.get("score", "auto"), "score", ("auto", *SCORES))
    sizes = np.unique(parts.y, return_counts=True)[1]
    several = asked == "auc" and parts.task == "classification" and len(sizes) > 2
    said = f"--score auc is for two classes, and {parts.target!r} has {len(sizes)}: leave it out"
    refuse((several, f"{said} (AUC is shown next to the main score)."))
    rare = sizes.max() >= MOST_OF_ALL * len(parts.y) or given.get("priors") is not None
    chosen = SCORES.get("balanced" if rare and asked == "auto" else asked)
    return chosen if parts.task == "classification" else None


# ---- where results go ----------------------------------------------------------------------------


def places(out: str | None, stem: str) -> tuple[Path, Path]:
    """The paths of the model file and the report of a fit.

    They are in the folder `out` (None: the current one), or named after it if it ends in .skops or
    .html.
    """
    given = Path(out or ".")
    named = given.suffix in (".skops", ".html")
    wrong = "--out must be a folder, or a file that ends in .skops or .html"
    unknown = bool(given.suffix) and not named and not given.is_dir()
    refuse((unknown, f"{wrong}, got {out} instead."))
    base = given.with_suffix("") if named else given / f"{stem}-fitonce"
    return base.with_name(f"{base.name}.skops"), base.with_name(f"{base.name}.html")


def beside(model: str, out: str | None, ending: str) -> Path:
    """The file that `out` names; by default the model's name with another ending, in this
    folder.
    """
    return Path(Path(model).name).with_suffix(ending) if out is None else Path(out)


def check_output(out: Path | str, *inputs: str | None) -> None:
    """Refuse a file that cannot be written, or that is an input, before anything is computed.

    A folder that does not exist yet is created when there is a file to write. Pipes and devices are
    not harmed.
    """
    there = [given for given in inputs if given is not None and os.path.exists(given)]
    same = os.path.exists(out) and any(os.path.samefile(out, given) for given in there)
    overwritten = f"{out} is an input of this command, which would be overwritten"
    refuse((same and not is_stream(out), f"{overwritten}: give another file with --out."))
    first = Path(out)  # of the folders and the file, the first that does not exist
    while not first.parent.exists():
        first = first.parent
    check_place(first)


def make_folder(file: Path | str) -> None:
    """Create the folder of a file that is about to be written."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)


# ---- commands that take a table ------------------------------------------------------------------


def fit_demo(given: Given) -> None:
    """Fit the table of the demonstration."""
    usual = {"permutations": "auto", "kernel": "auto", "landmarks": "auto", "confounding": "remove"}
    fit_table({"table": "breast-cancer", **usual, **given}, "demo")
    screen_of(given).aside("To analyze your own table: fitonce fit table.csv --target COLUMN")


def fit_table(given: Given, command: str = "fit") -> None:
    """Describe the table, assess, fit on all rows, show, write."""
    skops_io()  # fail now, not after all the work, if skops is not installed
    screen, given = screen_of(given), with_permutations(given)
    model_file, page = places(given["out"], stem_of(given["table"]))
    for path in (model_file, page) if given["page"] else (model_file,):
        check_output(path, given["table"])
    kept = f"{model_file} exists already: give another name with --out, or --force to replace the "
    refuse((model_file.is_file() and not given["force"], f"{kept}earlier model."))
    parts = design(demo_table(), "diagnosis") if command == "demo" else opened(screen, given)
    estimator, judged, notes, settings = modelled(command, screen, parts, given)
    with screen.working() as bars, threads_for(parts):
        answer = assessed(estimator, judged, given)
        rivals = compared_with_others(answer, parts, judged, settings, given["random_state"])
        bars(0, 0, "fitting all rows")
        with caught_warnings() as caught:
            shown = fit_all(estimator, parts, judged)
    texts = [*answer.warnings, *(message for message, _ in warned(caught))]
    choice, warnings = choice_of(estimator), show.warnings_of(texts, answer, settings, rivals)
    show.show_assessment(screen, answer, rivals, warnings, estimator, choice)
    known = {
        **parts.identity,
        "table": Path(parts.name).name,
        "notes": notes,
        "settings": settings,
        "chosen": choice,
        "assessment": answer.to_dict(),
        "comparison": None if rivals is None else rivals.to_dict(),
    }
    if is_committee(estimator[-1]):
        known["members"] = estimator[-1].describe()
    make_folder(model_file)
    files = {"model": str(save(estimator, model_file, metadata=known | kept_rows(shown, parts)))}
    if given["page"]:
        try:
            with screen.working("writing the report"):
                options = {"others": rivals, "include_data": given.get("data", True)}
                write_page(page, shown, parts, judged, answer, **options)
            files["page"] = str(page)
        except ImportError as error:
            screen.aside(f"no report: {error}")
    screen.finish({"command": command, **known, "warnings": warnings, "files": files})


def compared_with_others(
    answer: Assessment, parts: Design, judged: Design, settings: Given, seed: int
) -> Any:
    """Other kinds of models on the same rows, None if there are many rows, or confounds, for which
    they cannot adjust, or an order in time: an assessment does not know which rows before a span
    its model has seen.
    """
    if len(parts.y) > LANDMARKS_ABOVE or parts.confounds is not None or parts.forward:
        return None
    linear = reference("linear", parts, seed, settings.get("priors"))
    models = {"this model": answer, "linear model": linear}
    if settings.get("effort") == "best":
        models[show.FOREST] = reference("forest", parts, seed)
    return compared(models, judged)


def kept_rows(estimator: Any, parts: Design) -> Given:
    """What a model file keeps of the rows beside their features, for prediction intervals."""
    small = len(parts.y) <= LANDMARKS_ABOVE and parts.confounds is None
    if not small or is_committee(estimator[-1]) or estimator[-1].landmarks is not None:
        return {}
    return {"rows": {"y": parts.y, "sample_weight": parts.weights, "groups": parts.groups}}


def demo_table() -> Table:
    """569 biopsies, benign or malignant, with 30 measurements each."""
    from sklearn.datasets import load_breast_cancer  # takes long to import

    bunch = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in bunch.feature_names]
    diagnosis = pl.Series("diagnosis", bunch.target_names[bunch.target].tolist())
    frame = pl.DataFrame(bunch.data, schema=names).with_columns(diagnosis)
    source = "Wisconsin breast cancer (Street, Wolberg and Mangasarian 1993), from scikit-learn"
    return Table(frame, "breast cancer", [f"data: {source}"])


def write_page(
    path: Path, estimator: Any, parts: Design, judged: Design, answer: Assessment, **options: Any
) -> None:
    """Write the HTML report of a model of the assessed rows; raises ImportError if a package is
    missing.
    """
    from ..report import write_report
    from ..report.subject import Origin

    name, total = Path(parts.name).name, None if judged is parts else len(parts.y)
    notes = [*parts.notes, *chosen_categories(estimator), *parts.hints]
    make_folder(path)
    with caught_warnings():  # those of the fit have been shown already
        write_report(
            path,
            estimator,
            judged.X,
            judged.y,
            assessment=answer,
            feature_names=judged.X.columns,
            row_names=judged.row_names,
            sample_weight=judged.weights,
            confounds=judged.confounds,
            origin=Origin(name, parts.target, notes, total),
            title=name if total is None else f"{name}: a random sample of its rows",
            **options,
        )


def evaluate_table(given: Given) -> None:
    """Assess a model without fitting all rows."""
    screen, given = screen_of(given), with_permutations(given)
    parts = opened(screen, given)
    estimator, judged, _, settings = modelled("evaluate", screen, parts, given)
    with screen.working(), threads_for(parts):
        answer = assessed(estimator, judged, given)
    warnings = show.warnings_of(answer.warnings, answer, settings)
    show.show_assessment(screen, answer, warnings=warnings)
    found = {**parts.identity, "settings": settings, "assessment": answer.to_dict()}
    screen.finish({"command": "evaluate", **found, "warnings": warnings}, str(answer.score))


def compare_table(given: Given) -> None:
    """Read the table, compare the models, show the result and draw it."""
    screen, names, out = screen_of(given), names_of(given["models"]), given["out"]
    if out is not None:
        check_picture(out, given["table"])
    parts = opened(screen, given)
    judged, sampling = assessed_rows(parts, given["random_state"])
    alone = "Evaluate the settings of a model with confounds one after the other."
    refuse(
        (
            parts.confounds is not None,
            "compare does not support --confound, because the other kinds of models cannot adjust "
            f"for confounds. {alone}",
        )
    )
    show.announce(screen, "compare", parts, [*parts.notes, *sampling])
    models = {name: reference(name, parts, given["random_state"]) for name in names}
    with screen.working(), threads_for(parts), caught_warnings() as caught:
        once = {"repeats": 1} if parts.forward else {}
        result = compared(models, judged, **taken(compare, given) | once)
    others = (w for w in caught if not issubclass(w.category, RefitWarning))
    warnings = [message for message, _ in warned(others)] + parts.hints
    screen.show(*render.comparison(result))
    screen.warn(warnings)
    files = {} if out is None else {"picture": drawn(result, Path(out))}
    found = {"comparison": result.to_dict(), "warnings": warnings, "files": files}
    best = f"{result.best}: {result.scores[result.best]}"
    screen.finish({"command": "compare", **parts.identity, **found}, best)


def names_of(text: str) -> list[str]:
    """The requested models, such as "rbf,linear,forest"."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    different = len(set(names)) == len(names) > 1 and set(names) <= set(COMPARED)
    asked = f"two or more different models out of {', '.join(COMPARED)}, separated by commas"
    refuse((not different, f"--models must name {asked}, got {text!r} instead."))
    return names


def check_picture(out: str, table: str) -> None:
    """Refuse a picture that cannot be drawn before the work begins."""
    from ..plotting.style import pyplot

    endings = ", ".join(PICTURES)
    wrong = f"--out must be a plot with the ending {endings}, got {out!r} instead."
    refuse((Path(out).suffix.lower() not in PICTURES, wrong))
    check_output(out, table)
    pyplot()


def drawn(result: Any, path: Path) -> str:
    """The file with a picture of all differences."""
    from ..plotting import BarDisplay

    content = io.BytesIO()
    figure = BarDisplay.from_comparison(result).figure_
    figure.savefig(content, format=path.suffix.lower()[1:], dpi=150)
    make_folder(path)
    write_atomically(path, content.getvalue())
    return str(path)


def permute_table(given: Given) -> None:
    """Run the permutation test alone."""
    screen = screen_of(given)
    one_of(given["statistic"], "statistic", ("quick", "same"))
    parts = opened(screen, given)
    estimator, _ = pipeline(parts, **taken(pipeline, given), landmarks="none")
    show.announce(screen, "permute", parts, parts.notes, given["confounding"])
    with screen.working() as bars, threads_for(parts), caught_warnings() as caught:
        bars(0, given["permutations"], "permutations")
        test, said = significance(
            estimator,
            parts.X,
            parts.y,
            groups=parts.groups,
            confounds=parts.confounds,
            **taken(significance, given) | {"cv": parts.folds(given["cv"])},
        )
    texts = (message for message, _ in warned(caught))
    warnings = show.to_the_point(texts) + parts.hints
    screen.show(show.null(test), render.significance(test, said))
    screen.warn(warnings)
    found = {"statistic": said, "warnings": warnings, "permutation": summary_of(test, rows=True)}
    screen.finish({"command": "permute", **parts.identity, **found}, f"p = {test.pvalue:.4g}")
