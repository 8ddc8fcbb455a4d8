"""scikit-learn's `permutation_test_score`, with the labelings as right-hand sides of one
decomposition.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from ..core.numerical_warnings import depth_inside_package
from ..core.rows import is_rows
from ..crossval.confounds import taken
from ..crossval.depends import share_landmarks
from ..crossval.lookup import n_rows
from ..estimators.confounding import coding_of
from ..estimators.fitted import final_step
from ..rows.dask import is_dask
from .checkpoint import Checkpoint, check_place, check_resumable, fingerprint
from .deletion_maps import MAX_BYTES
from .evaluation import Evaluation
from .exchange import ValidityWarning
from .question import Question
from .result import PermutationTest
from .run import Run
from .scoring import Routed, Scoring, measures

FEW = 20  # orders of the labels: with fewer, p = 0.05 cannot be reached

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
    """Test the significance of a cross-validated score with permutations: scikit-learn's function,
    by the fastest route.

    All permuted labelings are the columns of one matrix product. The score equals that of
    ``sklearn.model_selection.permutation_test_score``. By default, the null scores are drawn in
    another way, which is valid in cases where scikit-learn's is not: see `permute`.

    Parameters
    ----------
    estimator : estimator
        An estimator of fitonce, or a pipeline that ends in one. Any other is refitted, with a
        warning.
    X : array-like, sparse matrix or kernel matrix
        All rows. torch and CuPy arrays are processed on their device.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter and for `exchange`. With metadata routing they are given in
        `params`, and count for `exchange` only where it is named.
    cv : int, splitter, iterable of splits or None, default=None
        As in scikit-learn.
    n_permutations : int, default=100
        Number of labelings to draw.
    n_jobs : int, default=None
        Number of processes for labelings that have to be fitted one by one.
    random_state : int, RandomState or None, default=0
        Seed for the permutations.
    verbose : int, default=0
        If above 0, print progress.
    scoring : str, callable, list, tuple, dict or None, default=None
        One or several scores, all from the same pass; the three returned values are those of the
        first. In addition to scikit-learn's names: "correlation" and "confusion_matrix" (not as the
        first). Scores that are known by name are computed for all permutations at once.
    params : dict, default=None
        Parameters for `fit`. ``sample_weight`` and ``confounds`` stay with their rows of X.
        Confounds change what is permuted: labels within the levels of categorical ones (exact); for
        numeric ones, residuals of y, or class labels drawn from a model given the confounds
        (approximate, with a warning).
    permute : {"cosets", "resplit", "within-folds", "free"} or None, default=None
        How labels are permuted relative to the folds. "cosets" permutes each label together with
        its fold. "resplit" splits again for every permuted y: scikit-learn's draws. "within-folds"
        permutes within each test fold. "free" permutes over fixed folds, which must not depend on
        y. None is "cosets", except for splits that follow the order of the rows ("free", with a
        warning) and splitters that use X ("resplit").
    exchange : {"within", "rows", "whole", "whole-unequal", "sign", "shift"} or None, default=None
        What can be exchanged under the null hypothesis. "within": labels within each group (the
        default with `groups`); "rows": labels over all rows; "whole": groups of equal size exchange
        their labels as units; "whole-unequal": groups with one label each exchange it whatever
        their sizes; "sign": the two classes are swapped within a pair (`groups`), or numbers change
        sign; "shift": labels are shifted circularly, for time series.
    pooled : bool, default=False
        Whether to compute one score over all held-out predictions instead of the mean over folds.
    exact : bool or "auto", default="auto"
        Whether to use every distinct labeling once; "auto" does so if there are at most
        `n_permutations`.
    stop_after : int, default=None
        Stop when this many null scores have reached the observed one, for every score (Besag &
        Clifford 1991).
    checkpoint : path, default=None
        A file that is updated as the test goes on. The same call resumes from it, with the
        identical result. Needs an integer `random_state`.
    max_bytes : int, default=256 MiB
        Working memory in addition to the n×n matrices of the problem.

    Returns
    -------
    PermutationTest
        A tuple (score, permutation_scores, pvalue) with further attributes. The p-value is (1 +
        b)/(1 + P) for b of P null scores that reach the observed one, including ties (to 1e-10).

    Notes
    -----
    Exact: scores equal those of literal refits up to rounding. Cost on route "one" with n rows and
    P permutations of c classes: O(n³) once; one product of n×n with n×P(c-1); O(n m) per column and
    O(n m²) per placement of the folds, for folds of m rows.

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
    routing = sklearn.get_config()["enable_metadata_routing"]
    if routing and groups is not None:
        raise ValueError(
            "`groups` can only be passed if metadata routing is not enabled via "
            "`sklearn.set_config(enable_metadata_routing=True)`. When routing is enabled, pass "
            "`groups` alongside other metadata via the `params` argument instead."
        )
    check_counts(n_permutations, stop_after, max_bytes, exact)
    check_place(checkpoint)
    if is_dask(X) or is_rows(X):
        raise ValueError(
            "permutation_test_score needs the rows in memory, since it uses them many times. "
            "Gather them (X.compute() for a Dask collection), or test a random subset."
        )
    confounds, params = taken(estimator, params)
    classifier, routed = is_classifier(estimator), None
    if routing:
        groups = (params or {}).get("groups") if exchange not in (None, "rows") else None
        cv = check_cv(cv, y, classifier=classifier)
        routed = Routed.of(estimator, cv, scoring, params or {})
        params = routed.fit
    estimator = with_shared_landmarks(estimator, X, y, params)
    split_metadata = None if routed is None else routed.split
    problem = Question.of(estimator, X, y, groups, cv, permute, exchange, confounds, split_metadata)
    measured = measures(
        final_step(estimator), scoring, classifier=classifier, classes=problem.classes
    )
    if routed is not None:
        measured = [replace(measure, params=routed.score[measure.name]) for measure in measured]
    scoring_ = Scoring(estimator, measured, problem.classes, problem.y.ndim == 1, pooled)
    test = Evaluation(problem, scoring_, params, n_jobs, max_bytes)
    total, enumerated = planned(problem, n_permutations, exact, stop_after)
    names = [measure.name for measure in scoring_.measures]
    options = [scoring, names, pooled, stop_after, max_bytes, params]
    file = checkpoint_of(checkpoint, problem, X, total, enumerated, random_state, options)
    rng = check_random_state(random_state)
    run = Run(test, total, enumerated, rng, stop_after, file, verbose)
    scores, null, sequential, n_placements = run.finish()
    logger.info("route %s", test.route)
    return PermutationTest.of(
        scores,
        null,
        sequential,
        mode=problem.mode,
        n_placements=n_placements,
        exchange=problem.exchange_name,
        route=test.route,
        classes=problem.classes,
    )


def with_shared_landmarks(estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None) -> Any:
    """The estimator with landmarks chosen from all rows, if it shares them.

    They must not depend on the labels under test.
    """
    model = final_step(estimator)
    shares = (
        isinstance(getattr(model, "landmarks", None), (int, np.integer))
        and getattr(model, "shared_landmarks", False) is not False
    )
    if shares and (model.shared_landmarks == "drop" or model.landmark_method == "greedy"):
        raise ValueError(
            "a permutation test needs landmarks that are the same for all labelings and folds, got "
            f"shared_landmarks={model.shared_landmarks!r} with landmark_method="
            f"{model.landmark_method!r}. Use shared_landmarks=True with a method other than "
            "'greedy', which uses the labels, or shared_landmarks=False, which chooses landmarks "
            "in every training set."
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


def planned(
    question: Question, n_permutations: int, exact: bool | str, stop_after: int | None = None
) -> tuple[int, bool]:
    """How many labelings are used, and whether these are all that there are."""
    count = question.n_labellings
    enumerated = is_enumerated(count, n_permutations, exact, stop_after)
    orders = question.exchange.count
    if 1 < orders < FEW:
        advice = (
            ' If most groups have one label each, use exchange="whole", which permutes groups '
            "instead of the labels inside them."
        )
        warnings.warn(
            f"the labels can be in only {orders} different orders, too few for a small p-value "
            f"whatever the data.{advice if question.exchange_name == 'within' else ''}",
            ValidityWarning,
            stacklevel=depth_inside_package(),
        )
    return (count - 1 if enumerated else n_permutations), enumerated


def is_enumerated(
    count: int, n_permutations: int, exact: bool | str, stop_after: int | None = None
) -> bool:
    """Whether to use each of `count` labelings once instead of drawing some."""
    if count == 1:
        warnings.warn(
            "no permutation changes the labels: every group (or fold) has a single class, so the "
            "p-value is 1 whatever the data. "
            'To permute groups with one label each, use exchange="whole".',
            ValidityWarning,
            stacklevel=3,
        )
        return True
    if stop_after is not None:
        if exact is True:
            raise ValueError(
                f"stop_after={stop_after} cannot be combined with exact=True, which uses all "
                "labelings. Leave out one of the two."
            )
        return False
    if exact is True and count > 10_000_000:
        raise ValueError(
            f"exact=True would use {float(count):.3g} labelings, more than 10 million: draw some "
            "of them (exact=False)."
        )
    return exact is True or (exact == "auto" and count <= n_permutations)


def checkpoint_of(
    path: str | Path | None,
    question: Question,
    X: Any,
    total: int,
    enumerated: bool,
    random_state: Any,
    options: Any,
) -> Checkpoint | None:
    """The file to resume from, marked by everything that distinguishes one test from another."""
    if path is None:
        return None
    check_resumable(random_state, question.cv, enumerated)
    confounds = None
    if question.confounds is not None:
        coding, C = coding_of(question.confounds, n_rows(question.confounds))
        confounds = [C, [*coding.names, *map(str, coding.levels)]]
    mark = fingerprint(
        estimator=question.estimator,
        X=X,
        y=question.y,
        groups=question.groups,
        split_metadata=question.split_metadata,
        splits=question.splits,
        cv=question.cv if question.mode == "resplit" else None,
        permutations=[question.mode, question.exchange_name, enumerated, total],
        random_state=None if enumerated else random_state,
        confounds=confounds,
        options=options,
    )
    return Checkpoint(Path(path), mark)
