"""An estimator and its rows as validated values, the input of everything that follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    check_cv,
)

from ..core.arrays import Array, asarray_like, take, to_numpy
from ..core.columns import Columns
from ..core.holdout import Deletion
from ..core.readout import Readout
from ..core.refused import RefusedError, refuse
from ..core.rows import check_magnitude, dense_like, is_rows
from ..core.splits import Splits, complement, split_rows
from ..kernels import KernelSum, families
from ..landmarks.choice import landmarks_for
from ..tuning.criterion import Criterion, resolved
from ..tuning.specification import Data, Specification
from ..tuning.tuner import Tuner
from .confounding import coding_of
from .parameter_values import check_alpha, is_precomputed
from .parameters import check_confounded, check_parameters
from .validation import (
    as_rows,
    check_fit_data,
    check_landmarks,
    check_weights,
)

# how an estimator reads y: its readout, the classes and class indices of the active rows (None for
# numbers), and the weights of the rows, including those of their classes
Labels = tuple[Readout, np.ndarray | None, np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True)
class Training:
    """The validated input of `fit`: all rows, of which only those with positive weight (`active`)
    are used for training.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None
    active: np.ndarray
    precomputed: bool
    confounds: np.ndarray | None = None  # coded, for all rows (n, q)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def all_active(self) -> bool:
        return len(self.active) == self.n_samples

    @property
    def row_weights(self) -> np.ndarray:
        return np.ones(self.n_samples) if self.weights is None else self.weights

    def active_X(self) -> Any:
        """The rows with positive weight, or the kernel among them."""
        if self.all_active:
            return self.X
        X = take(self.X, self.active)
        return take(X.T, self.active) if self.precomputed else X  # a kernel is symmetric

    def inactive_rows(self, rows: np.ndarray) -> Array:
        """The given rows in the form that `predict` takes.

        Features, or their kernel with the active rows.
        """
        X = take(self.X, rows)
        return take(X.T, self.active).T if self.precomputed else X

    def positions(self) -> np.ndarray:
        """The index of each row among the active ones (n,), -1 for the others."""
        position = np.full(self.n_samples, -1)
        position[self.active] = np.arange(len(self.active))
        return position

    def deletion(self, train: np.ndarray, test: np.ndarray) -> Deletion:
        """A split as the active rows it deletes, and the positions of its test rows among them."""
        position = self.positions()
        deleted = complement(position[train][position[train] >= 0], len(self.active))
        tested = position[test][position[test] >= 0]
        return deleted, np.searchsorted(deleted, tested)


@dataclass(frozen=True)
class Setup:
    """Rows, how their labels are read, and what is tuned."""

    training: Training
    data: Data
    specification: Specification
    readout: Readout
    verbose: int

    def tuner(self, folds: Splits | None = None) -> Tuner:
        deletions = None if folds is None else [self.training.deletion(*fold) for fold in folds]
        given = self.data, self.specification, self.readout, deletions
        return Tuner(*given, verbose=self.verbose)


def specification_of(estimator: Any, n_classes: int) -> Specification:
    """What an estimator tunes, from its parameters; `n_classes` is 0 for numbers."""
    given = resolved(estimator.criterion, n_classes)
    criterion = Criterion(given, getattr(estimator, "compression", 1.0), estimator.pooled)
    kernel = estimator.kernel
    if isinstance(kernel, KernelSum):
        kernel = kernel.plan(
            estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
        )
    return Specification(
        kernel=families(kernel),
        kernel_params=estimator.kernel_params,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        penalty=estimator.penalty,
        alphas=check_alpha(estimator.alpha),
        fit_intercept=estimator.fit_intercept,
        criterion=criterion,
        refine=estimator.refine,
        dropping=estimator.shared_landmarks == "drop",
        search=estimator.search,
        each_target=getattr(estimator, "alpha_per_target", False),
    )


def setup_of(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    confounds: Any = None,
    *,
    by_target: bool = False,
) -> Setup:
    """Validated rows, labels and specification of an estimator; sets `n_features_in_`.

    `by_target`: y is not copied, and is processed in blocks of columns.
    """
    training = training_of(estimator, X, y, sample_weight, groups, by_target)
    return _with_landmarks(estimator, _validated(estimator, training, confounds, by_target))


def accepted_setup(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, confounds: Any = None
) -> Setup:
    """The same without groups, for a caller that has another way where fit refuses these rows or
    parameters: this is then a `RefusedError`.
    """
    try:
        training = training_of(estimator, X, y, sample_weight)
        setup = _validated(estimator, training, confounds)
    except (ValueError, TypeError) as error:  # what validation raises, scikit-learn's included
        raise RefusedError(str(error)) from error
    return _with_landmarks(estimator, setup)


def _validated(
    estimator: Any, training: Training, confounds: Any, by_target: bool = False
) -> Setup:
    """Labels and specification of validated rows; without landmarks. Targets that are processed in
    columns are not read yet.
    """
    if confounds is not None:
        check_confounded(estimator)
        if is_rows(training.X):
            raise ValueError(
                "confounds need the rows in memory, got rows in files, blocks or Dask collections: "
                "load them into memory, or use a subset."
            )
        estimator.confounds_, coded = coding_of(confounds, training.n_samples)
        training = replace(training, confounds=coded)
    active, X, C = training.active, training.active_X(), training.confounds
    weights = None if training.weights is None else training.weights[active]
    if by_target:
        rows = None if training.all_active else active
        columns = Columns(training.y, rows, bool(estimator.alpha_per_target)).checked()
        y = np.broadcast_to(0.0, columns.shape)
    else:
        check_one_alpha(estimator, training.y)
        y, columns = training.y[active], None
    readout, classes, codes, weights = estimator.__fitonce_labels__(y, weights)
    y = y if columns is None else np.empty((len(active), 0))
    targets = readout.targets(y if codes is None else codes)
    data = Data(
        X,
        y,
        codes,
        targets,
        weights,
        None if weights is None else asarray_like(np.sqrt(weights)[:, None], dense_like(X)),
        classes=classes,
        confounds=None if C is None else asarray_like(C[active], dense_like(X)),
        removed=estimator.confounding == "remove",
        columns=columns,
    )
    specification = specification_of(estimator, readout.n_classes)
    return Setup(training, data, specification, readout, estimator.verbose)


def _with_landmarks(estimator: Any, setup: Setup) -> Setup:
    """The same with its landmarks, where it has any; chosen once, whatever is tuned."""
    given, data = estimator.landmarks, setup.data
    if given is None:
        return setup
    if not isinstance(given, (int, np.integer)):
        given = check_landmarks(given, data.X)
    landmarks = landmarks_for(
        data.X,
        data.targets,
        data.weights,
        given,
        estimator.landmark_method,
        lambda: setup.specification.central_kernel(data),
        estimator.random_state,
    )
    return replace(setup, data=replace(data, landmarks=landmarks))


def check_one_alpha(estimator: Any, y: np.ndarray) -> None:
    """Refuse an alpha for each target if a single alpha is needed."""
    tuned = isinstance(estimator.alpha, str) or np.size(estimator.alpha) != 1
    if getattr(estimator, "alpha_per_target", False) and tuned and np.ndim(y) == 2:
        raise ValueError(
            "this needs one alpha for all targets, got alpha_per_target=True: use "
            "alpha_per_target=False here; permutation tests of many targets are "
            "fitonce.permutation_test_targets."
        )


def training_of(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    by_target: bool = False,
) -> Training:
    """Validated rows, and valid parameters."""
    check_parameters(estimator)
    X, y, sample_weight, groups = as_rows(estimator, X, y, sample_weight, groups)
    X, y = check_fit_data(estimator, X, y, multi_output=estimator.multi_output, many=by_target)
    if not is_rows(X) and not callable(estimator.kernel):
        check_magnitude(X.data if sp.issparse(X) else X, "X")
    if estimator.multi_output and not by_target:
        check_magnitude(y, "y", "Scale the targets")
    weights = check_weights(sample_weight, X.shape[0])
    active = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0)
    refuse(
        (
            len(active) < 2,
            f"{type(estimator).__name__} needs at least two rows with positive sample_weight, got "
            f"{len(active)}.",
        ),
        (
            is_rows(X) and len(active) < X.shape[0],
            f"{X.shape[0] - len(active)} rows have zero weight: leave them out of the source, "
            "which is read as it is.",
        ),
    )
    groups = None if groups is None else np.asarray(to_numpy(groups))
    if groups is not None and len(groups) != X.shape[0]:
        raise ValueError(
            f"groups must have one entry per row ({X.shape[0]}), got {len(groups)} instead."
        )
    return Training(X, y, weights, groups, active, is_precomputed(estimator.kernel))


def folds_of(cv: Any, training: Training, classifier: bool) -> Splits | None:
    """The splits for tuning and calibration; None means leave-one-out."""
    if cv is None and training.groups is None:
        return None
    n = training.n_samples
    X = training.X if isinstance(training.X, np.ndarray) else np.empty((n, 1))
    cv = LeaveOneGroupOut() if cv is None else check_cv(cv, training.y, classifier=classifier)
    folds = split_rows(cv.split(X, training.y, groups=training.groups), n)
    if any(len(np.unique(train)) != len(train) for train, _ in folds):
        raise ValueError(
            "cv contains a training row twice in one split; use sample_weight to count a row more "
            "than once."
        )
    untrained = [number for number, (train, _) in enumerate(folds) if train.size == 0]
    if untrained:
        raise ValueError(
            f"split {untrained[0]} of cv has no training rows. Leave it out, or correct the "
            "splitter."
        )
    return folds


def default_folds(training: Training, n_splits: int, classifier: bool) -> Splits:
    """Random folds: of whole groups if there are groups; for classes stratified, with at most as
    many folds as the smallest class has rows.
    """
    n, groups = training.n_samples, training.groups
    if groups is not None:
        cv: Any = GroupKFold(min(n_splits, len(np.unique(groups))))
        return list(cv.split(np.empty((n, 1)), training.y, groups))
    y, kind = training.y[training.active], KFold
    fewest = int(np.unique(y, return_counts=True)[1].min()) if classifier else len(y)
    if classifier and fewest > 1:
        kind = StratifiedKFold
    cv = kind(max(2, min(n_splits, fewest)), shuffle=True, random_state=0)
    return list(cv.split(np.empty((n, 1)), training.y))
