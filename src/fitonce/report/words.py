"""What a page says in sentences: summary, doubts, a paragraph for a methods section."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from .figures import rounded
from .names import shortened
from .scores import (
    chosen_values,
    interval_text,
    kernel_text,
    main_score,
    model_name,
    n_candidates,
    own_score,
    percent,
    score_name,
    score_text,
)
from .subject import Subject, finite_rows

# replaced by the size of the page; a noncharacter, which names cannot contain
SIZE = "\ufdd0size\ufdd0"


def default_title(subject: Subject) -> str:
    name = model_name(subject)
    return f"{name[0].upper()}{name[1:]} on {subject.n_samples:,} rows"


def _features(subject: Subject) -> str:
    return f"{subject.n_features:,} feature{'s' * (subject.n_features != 1)}"


def subtitle(subject: Subject) -> str:
    what = f"{len(subject.classes)} classes" if subject.classification else "regression"
    columns = "a precomputed kernel" if subject.precomputed else _features(subject)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"{model_name(subject)} · {subject.n_samples:,} rows · {columns} · {what} · {today}"


def cards(subject: Subject) -> list[dict[str, str]]:
    """The figures at the top."""
    found = _assessment_cards(subject)
    chosen_by = ", which were chosen by it" if n_candidates(subject) > 1 else ""
    found.append(
        _card(
            f"{subject.splits.split(' by')[0]} {main_score(subject)}",
            score_text(subject, own_score(subject)),
            f"of the chosen settings{chosen_by}",
        )
    )
    if subject.classification:
        sizes = np.bincount(subject.codes, minlength=len(subject.classes))
        several = f"{sizes.min():,} to {sizes.max():,} rows a class"
        note = several if len(sizes) > 2 else f"{sizes[0]:,} and {sizes[1]:,} rows"
        found.append(_card("classes", f"{len(sizes)}", note))
    return found


def _card(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def _assessment_cards(subject: Subject) -> list[dict[str, str]]:
    assessment = subject.assessment
    if assessment is None:
        return []
    score, baseline, test = assessment.score, assessment.baseline, assessment.permutation
    note = f"{interval_text(subject) or 'no interval'} ({score.method})"
    always = "the most frequent class" if subject.classification else "the mean"
    found = [
        _card(f"nested {main_score(subject)}", score_text(subject, score.value), note),
        _card(
            "without the features",
            score_text(subject, baseline.value),
            f"always {always}, same folds",
        ),
    ]
    if test is not None:
        note = f"{test.n_permutations_done:,} relabellings{', all there are' * bool(test.exact)}"
        found.append(_card("p-value, permutation test", rounded(float(test.pvalue)), note))
    return found


def summary(subject: Subject) -> list[str]:
    """What was asked and what came out, in sentences."""
    source = "a kernel matrix" if subject.precomputed else _features(subject)
    names = subject.class_names
    among = " or ".join(names) if len(names) == 2 else f"one of {len(names)} classes"
    what = f"whether a row is {among}" if names else "how large the target of a row is"
    asked = f"The question was {what}, told from {source}."
    first, *others = _own_summary(subject) if subject.assessment is None else _nested(subject)
    return [f"{asked} {first}", *others]


def _own_summary(subject: Subject) -> list[str]:
    score = own_score(subject)
    if subject.classification:
        found = (
            f"Left out and predicted by a model that had not seen them, {percent(score)} of "
            f"{int(finite_rows(subject.held_out).sum()):,} rows were classified correctly "
            f"({subject.splits})."
        )
    else:
        found = (
            f"Predictions of rows that the model had not seen explain R² = {score:.3f} of the "
            f"variance ({subject.splits})."
        )
    if n_candidates(subject) == 1:
        return [found, "The settings were given, not tuned on these rows."]
    return [
        found,
        "The settings were chosen by these same predictions, so that the figure is somewhat "
        "optimistic. Pass the result of fitonce.assess to have nested scores with intervals here.",
    ]


def _nested(subject: Subject) -> list[str]:
    assessment: Any = subject.assessment
    interval = interval_text(subject)
    sentences = [
        f"In nested cross-validation the model reaches an {main_score(subject)} of "
        f"{score_text(subject, assessment.score.value)}{f' ({interval})' if interval else ''}; a "
        "model that ignores the features reaches "
        f"{score_text(subject, assessment.baseline.value)}."
    ]
    test = assessment.permutation
    if test is not None:
        kind = "all {} relabellings" if test.exact else "{} random relabellings"
        sentences.append(
            "If features and target had nothing to do with each other, a score as good as the "
            f"observed one would come up with probability p = {rounded(float(test.pvalue))} "
            f"({kind.format(f'{test.n_permutations_done:,}')})."
        )
    if subject.classification:
        wrong, tested = int(subject.wrong.sum()), int(subject.predicted_rows.sum())
        sentences.append(f"{wrong:,} of {tested:,} held-out rows were predicted wrongly.")
    return sentences


def doubts(subject: Subject) -> list[str]:
    """What a reader must know before believing the figures."""
    found = list(subject.assessment.warnings) if subject.assessment is not None else []
    if subject.classification:
        sizes = np.bincount(subject.codes, minlength=len(subject.classes))
        few = [name for name, size in zip(subject.class_names, sizes, strict=True) if size < 5]
        if few:
            found.append(
                f"Fewer than five rows of {_listed(few)}: nothing certain can be said of so few."
            )
    if subject.n_samples < 20:
        found.append(
            f"There are only {subject.n_samples} rows: every figure on this page is uncertain."
        )
    return found


def _listed(names: list[str], limit: int = 6) -> str:
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def performance_text(subject: Subject) -> str:
    assessment = subject.assessment
    if assessment is not None:
        repeats = "" if assessment.repeats == 1 else f", {assessment.repeats} times"
        return (
            f"Nested cross-validation, {assessment.cv}{repeats}: preprocessing and tuning were "
            "done anew on every training set, so that no scored row had a say in the model that "
            f"predicted it. The interval is by {assessment.score.method}."
        )
    unseen = (
        " Preprocessing steps of the pipeline have seen all rows." if subject.in_pipeline else ""
    )
    return (
        "Every row was predicted by a model that was fitted without it "
        f"({subject.splits}, exactly what refitting gives).{unseen} There is no nested "
        "cross-validation and no permutation test on this page: pass an assessment for them."
    )


def choice_text(subject: Subject) -> str:
    model = subject.model
    count = n_candidates(subject)
    kernel = f"The {kernel_text(model)} kernel with {' and '.join(chosen_values(model))}"
    if count == 1:
        return f"{kernel} was given, not tuned."
    return (
        f"{kernel} was the best of {count:,} candidates by the {score_name(model.criterion)} of "
        f"held-out predictions ({subject.splits}). It uses {model.effective_dof_:.1f} effective "
        f"degrees of freedom for {subject.n_samples:,} rows."
    )


def methods_text(subject: Subject, version: str, verification: Any) -> str:
    """A paragraph for a methods section."""
    model = subject.model
    steps = [type(step).__name__ for step in subject.steps[:-1]]
    after = f" after {' and '.join(steps)}" if steps else ""
    norm = "dual coefficients" if model.penalty_ == "dual" else "function norm"
    columns = "" if subject.precomputed else f" and {subject.n_features:,} features"
    sentences = [
        f"We fitted a {model_name(subject)} ({kernel_text(model)} kernel, "
        f"{', '.join(chosen_values(model))}, penalty on the {norm}){after} to "
        f"{subject.n_samples:,} rows{columns} with fitonce {version}."
    ]
    if n_candidates(subject) > 1:
        sentences.append(
            f"Its settings were chosen among {n_candidates(subject):,} candidates by the "
            f"{score_name(model.criterion)} of exact held-out predictions ({subject.splits})."
        )
    assessment = subject.assessment
    if assessment is not None:
        interval = interval_text(subject)
        sentences.append(
            f"Nested cross-validation ({assessment.cv}), with all preprocessing and tuning inside "
            f"the training sets, gave an {main_score(subject)} of "
            f"{score_text(subject, assessment.score.value)}"
            f"{f' ({interval}, {assessment.score.method})' if interval else ''}, against "
            f"{score_text(subject, assessment.baseline.value)} without the features."
        )
    if assessment is not None and assessment.permutation is not None:
        test = assessment.permutation
        sentences.append(
            f"A permutation test ({test.n_permutations_done:,} relabellings) gave p = "
            f"{rounded(float(test.pvalue))}."
        )
    if verification is not None:
        sentences.append(shortened(str(verification), 600))
    return " ".join(sentences)


def footer(version: str, include_data: bool, has_explorer: bool) -> str:
    data = "It does not contain the training rows"
    if include_data:
        data = "It contains the training rows"
        if not has_explorer:
            data = "Its table of rows and its plots show training rows"
    return (
        f"Written by fitonce {version}. This file is {SIZE}, needs no network and asks for "
        f"nothing. {data}."
    )
