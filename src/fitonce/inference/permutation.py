"""scikit-learn's `permutation_test_score`, with the labellings as right-hand sides of one
decomposition.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from ..core.rows import is_rows
from ..crossval.confounds import taken
from ..crossval.routes import share_landmarks
from ..crossval.stand_in import n_rows
from ..estimators.confounding import coding_of
from ..estimators.fitted import final_step
from ..rows.dask import is_dask
from . import checkpoint as checkpoints
from .engine import MAX_BYTES
from .evaluation import Evaluation
from .exchange import ValidityWarning
from .fingerprint import fingerprint
from .question import Question
from .result import PermutationTest
from .run import Draws
from .scoring import Scoring, measures
from .validity import draws_anew

logger = logging.getLogger("fitonce")


def permutation_test_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    n_permutations: int = 100,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    scoring: Any = None,
    params: Mapping[str, Any] | None = None,
    permute: str | None = None,
    exchange: str | None = None,
    pooled: bool = False,
    exact: bool | str = "auto",
    stop_after: int | None = None,
    checkpoint: str | Path | None = None,
    max_bytes: int = MAX_BYTES,
) -> PermutationTest:
    """Evaluate the significance of a cross-validated score with permutations: scikit-learn's
    function, by the cheapest route.

    The decomposition of the rows and the factors of the folds do not see labels. They are computed
    once, and all permuted labellings go through them as the columns of one matrix product. The
    score is that of ``sklearn.model_selection.permutation_test_score``. The null scores are by
    default drawn in another way, which is valid where scikit-learn's is not: see `permute`.

    Parameters
    ----------
    estimator : estimator
        One of fitonce's, or a pipeline that ends in one. Any other estimator is refitted, with a
        warning.
    X : array-like, sparse matrix or kernel matrix
        All rows. torch and CuPy arrays are worked on where they live.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        For the splitter, and for `exchange`.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn: an integer means stratified folds for a classifier.
    n_permutations : int, default=100
        How many labellings to draw.
    n_jobs : int, default=None
        Processes for labellings that have to be fitted one by one; closed forms do not need it.
    random_state : int, RandomState or None, default=0
        Seed of the permutations.
    verbose : int, default=0
        Above 0, progress on the terminal.
    scoring : str, callable, list, tuple, dict or None, default=None
        One or several scores, all from the same pass; the three returned values are those of the
        first. Beside scikit-learn's names: "correlation" (Pearson's, regression) and
        "confusion_matrix" (counts; not first). Accuracy, balanced accuracy, ROC AUC, F1, precision,
        recall, log-loss without calibration, R², squared and absolute errors, correlation and
        confusion matrix are computed for all permutations at once; other scorers are called for
        each.
    params : dict, default=None
        Parameters for `fit`; ``sample_weight`` stays with its row of X: rows and their weights are
        exchangeable as pairs. ``confounds`` stay with their rows as well, and change what moves:
        labels within the levels of confounds that are categories (exact); for numbers, residuals
        of y given the confounds, or class labels drawn given a model of them (both approximate,
        with a warning).
    permute : {"cosets", "resplit", "within-folds", "free"} or None, default=None
        How labels and folds go together. "cosets" permutes each label together with its fold, so
        that permuted folds are as balanced as the observed ones, whether they were made from y or
        the rows have a designed order; the folds are laid on the rows in a few ways
        (`n_placements`), with many labellings in each. "resplit" splits again for every permuted
        y: for the same `random_state` these are scikit-learn's own draws and scores.
        "within-folds" keeps the folds and permutes within each test fold. "free" keeps the folds
        and permutes over all rows, which is valid only if the folds were made without looking at y
        and the labels have no designed order; it is refused where folds are known to be made from
        y. None is "cosets", except for splits that follow the order of the rows
        (`TimeSeriesSplit`: "free", with a warning) and splitters that look at X ("resplit").
    exchange : {"within", "rows", "whole", "whole-unequal", "sign", "shift"} or None, default=None
        What the null hypothesis makes interchangeable. "within": labels within each group
        (scikit-learn's meaning of `groups`, and the default); "rows": labels over all rows,
        whatever the groups; "whole": groups of equal size trade their labels as units;
        "whole-unequal": groups of one label each trade it whatever their sizes, which is valid if
        sizes have nothing to do with labels; "sign": the two classes
        swap names within a pair (`groups`), or numbers change sign; "shift": the labels turn round
        in a circle, within each group if given, for series.
    pooled : bool, default=False
        One score over all held-out predictions instead of the mean over folds.
    exact : bool or "auto", default="auto"
        Try every distinct labelling once instead of drawing: "auto" does so if there are no more
        than `n_permutations`.
    stop_after : int, default=None
        Stop once so many null scores have reached the observed one, of every score asked for (Besag
        & Clifford 1991); the p-value of each is stop_after over the number drawn until it had been
        reached so often. 10 or 20 saves most of the work where nothing is there.
    checkpoint : path, default=None
        A file that is brought up to date after every block; a run with the same arguments goes on
        from it, with the identical result. Needs an integer `random_state`.
    max_bytes : int, default=256 MiB
        Working memory beside the n×n matrices of the problem, whatever the number of permutations.

    Returns
    -------
    PermutationTest
        A tuple (score, permutation_scores, pvalue) with further attributes. The p-value is (1 +
        b)/(1 + P) for b of P null scores that reach the observed one, ties (to 1e-10) included.

    Notes
    -----
    Exact: scores equal those of literal refits to rounding. Cost on route "one", n rows, P
    permutations of c classes: one Cholesky factorisation and inverse, O(n³); one product of n×n
    with n×P(c-1); O(n m) per column for folds of m rows. The fold blocks are factored for every
    placement of the folds, O(n m²) each: one with fixed folds, twenty or more with "cosets", P with
    "resplit". Training sets under some permutation without one of the
    classes are fitted literally, as everything is that has no closed form (`route` says how many).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from fitonce import KernelFisherDiscriminant
    >>> from fitonce.inference import permutation_test_score
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
    >>> cv = StratifiedKFold(5)
    >>> score, null, pvalue = permutation_test_score(model, X, y, cv=cv, n_permutations=199)
    >>> print(f"{score:.3f} {null.max():.3f} {pvalue:.3f}")
    0.980 0.493 0.005
    """
    if sklearn.get_config()["enable_metadata_routing"] and params:
        raise ValueError(
            "params with metadata routing enabled are not supported here: what they mean depends "
            "on who requests them. Switch routing off, "
            "or use sklearn.model_selection.permutation_test_score with fitonce's estimator."
        )
    check_counts(n_permutations, stop_after, max_bytes, exact)
    checkpoints.check_place(checkpoint)
    if is_dask(X) or is_rows(X):
        raise ValueError(
            "permutation_test_score needs the rows in memory: it goes over them many times. "
            "Gather them (X.compute() of a Dask "
            "collection), or test a random part of them."
        )
    estimator = with_shared_landmarks(estimator, X, y, params)
    confounds, params = taken(estimator, params)
    problem = Question.of(estimator, X, y, groups, cv, permute, exchange, confounds)
    scoring_ = Scoring(
        estimator,
        measures(
            final_step(estimator), scoring, classifier=problem.classifier, classes=problem.classes
        ),
        problem.classes,
        problem.y.ndim == 1,
        pooled,
    )
    test = Evaluation(problem, scoring_, params, n_jobs, max_bytes)
    enumerated = is_enumerated(problem.n_labellings, n_permutations, exact, stop_after)
    total = problem.n_labellings - 1 if enumerated else n_permutations
    mark = ""
    if checkpoint is not None:
        check_resumable(random_state, problem.cv, enumerated)
        mark = fingerprint(
            **asked(problem, X, groups, enumerated, total, random_state),
            scoring=[scoring, [measure.name for measure in scoring_.measures]],
            options=[params, pooled, stop_after, max_bytes, *told(confounds)],
        )
    run = Draws(
        test,
        total,
        enumerated,
        random_state,
        stop_after,
        Path(checkpoint) if checkpoint is not None else None,
        mark,
        verbose,
    )
    done = run.finish()
    logger.info("route %s", test.route)
    return PermutationTest.of(
        done.scores,
        done.null,
        done.sequential,
        mode=problem.mode,
        n_placements=done.n_placements,
        exchange=problem.exchange_name,
        route=test.route,
        classes=problem.classes,
    )


def told(confounds: Any) -> list[Any]:
    """Confounds as a fingerprint takes them; nothing where there are none."""
    if confounds is None:
        return []
    coding, C = coding_of(confounds, n_rows(confounds))
    return [C, [*coding.names, *map(str, coding.levels)]]


def with_shared_landmarks(estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None) -> Any:
    """The estimator with landmarks that all rows choose, where it shares them.

    They must not be chosen by the labels under test.
    """
    model = final_step(estimator)
    shares = (
        isinstance(getattr(model, "landmarks", None), (int, np.integer))
        and getattr(model, "shared_landmarks", False) is not False
    )
    if shares and (model.shared_landmarks == "drop" or model.landmark_method == "greedy"):
        raise ValueError(
            "a permutation test needs landmarks that are the same for all labellings and folds, "
            "got shared_landmarks="
            f"{model.shared_landmarks!r} with landmark_method={model.landmark_method!r}. Use "
            "shared_landmarks=True with another method "
            "than 'greedy', which looks at the labels, or shared_landmarks=False, which chooses "
            "anew on every training set."
        )
    return share_landmarks(estimator, X, y, params)[0]


def check_counts(n_permutations: Any, stop_after: Any, max_bytes: Any, exact: Any) -> None:
    for name, value in (
        ("n_permutations", n_permutations),
        ("stop_after", 1 if stop_after is None else stop_after),
        ("max_bytes", max_bytes),
    ):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r} instead.")
    if not (isinstance(exact, bool) or exact == "auto"):
        raise ValueError(f'exact must be True, False or "auto", got {exact!r} instead.')


def is_enumerated(
    count: int, n_permutations: int, exact: bool | str, stop_after: int | None = None
) -> bool:
    """Whether each of `count` labellings is tried once instead of drawing some."""
    if count == 1:
        warnings.warn(
            "no permutation changes the labels: every group (or fold) holds a single class, so "
            "the p-value is 1 whatever the data. "
            'Groups that have one label each are permuted by exchange="whole".',
            ValidityWarning,
            stacklevel=3,
        )
        return True
    if stop_after is not None:
        if exact is True:
            raise ValueError(
                f"stop_after={stop_after} cannot go with exact=True: a list of all labellings is "
                "gone through to its end. Leave out one of the two."
            )
        return False
    if exact is True and count > 10_000_000:
        raise ValueError(
            f"exact=True would try {float(count):.3g} labellings, more than 10 million: draw some "
            "of them (exact=False)."
        )
    return exact is True or (exact == "auto" and count <= n_permutations)


def check_resumable(random_state: Any, cv: Any, enumerated: bool) -> None:
    if not enumerated and not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            f"checkpoint needs an integer random_state, got {random_state!r} instead: only then "
            "can the same permutations be drawn again."
        )
    if draws_anew(cv) or (getattr(cv, "shuffle", False) and getattr(cv, "random_state", 0) is None):
        raise ValueError(
            "checkpoint needs folds that can be made again: give the splitter an integer "
            "random_state."
        )


def asked(
    question: Question, X: Any, groups: Any, enumerated: bool, total: int, random_state: Any
) -> dict[str, Any]:
    """What tells the draws of one question from those of another, by name."""
    return {
        "estimator": question.estimator,
        "X": X,
        "y": question.y,
        "groups": groups,
        "splits": question.splits,
        "cv": question.cv if question.mode == "resplit" else None,
        "permutations": [
            question.mode,
            question.exchange_name,
            enumerated,
            total,
            None if enumerated else random_state,
        ],
    }
