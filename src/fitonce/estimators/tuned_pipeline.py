"""Preprocessing chosen by the held-out score of the model after it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from ..core.numerical_warnings import depth_inside_package
from .classifier import KernelClassifier
from .record import kept_of
from .setup import default_folds

FOLDS = 5  # of the whole pipeline; as many as in scikit-learn's CalibratedClassifierCV


class TunedPipeline(Pipeline):
    """A pipeline whose preprocessing steps are chosen by the held-out score of its model.

    `fit` fits one pipeline for each candidate and keeps the one whose model has the best
    `best_score_`: the held-out score in closed form, from leave-one-out or from the model's own
    `cv` and groups. In cross-validation, the choice is repeated on every training set, and in a
    permutation test for every permutation, so scores and p-values account for it.

    As in every pipeline, the steps are fitted on all training rows before rows are left out of the
    model. So candidates should not use y: if features are selected with y, the score is too
    optimistic. Probabilities are not: if a step uses y (SelectKBest, TargetEncoder), they are
    calibrated on held-out decisions of the whole pipeline, from five refits with all its choices,
    and sets and intervals of the model are refused.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in scikit-learn's Pipeline. The last step is one of fitonce's estimators or committees.
    candidates : list of dict, default=None
        Parameters of steps before the last, in the form of `set_params`; all candidates with the
        same names. If scores are equal, the first wins. None for a pipeline without a choice.
    memory, verbose : object
        As in scikit-learn's Pipeline.

    Attributes
    ----------
    chosen_ : dict
        The chosen candidate. The steps have these parameters after `fit`.
    candidate_scores_ : array of shape (n_candidates,)
        `best_score_` of the model of each candidate; the mean over targets if each has one.

    Examples
    --------
    Rare categories are kept separate, or merged:

    >>> import numpy as np
    >>> from fitonce import LeastSquaresSVC, TunedPipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> rng = np.random.default_rng(0)
    >>> city = rng.geometric(0.1, size=120)[:, None]
    >>> y = (city[:, 0] % 2) ^ (rng.random(120) < 0.05)
    >>> encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False)
    >>> model = TunedPipeline(
    ...     [("city", encoder), ("model", LeastSquaresSVC())],
    ...     candidates=[{"city__min_frequency": None}, {"city__min_frequency": 10}],
    ... ).fit(city, y)
    >>> model.chosen_
    {'city__min_frequency': None}
    """

    def __init__(
        self,
        steps: Any,
        candidates: Any = None,
        *,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, memory=memory, verbose=verbose)
        self.candidates = candidates

    @property
    def chooses(self) -> bool:
        """Whether there is more than one candidate."""
        return self.candidates is not None and len(self.candidates) > 1

    def plain(self, candidate: Mapping[str, Any] | None = None) -> Pipeline:
        """An unfitted pipeline with one candidate, by default the first."""
        if candidate is None:
            candidate = self.candidates[0] if self.candidates else {}
        made = Pipeline(
            [(name, clone(step, safe=False)) for name, step in self.steps],
            memory=self.memory,
            verbose=self.verbose,
        )
        return made.set_params(**candidate)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit every candidate and keep the best.

        Parameters
        ----------
        X, y : object
            As in the steps.
        **params
            As in scikit-learn's Pipeline.

        Returns
        -------
        self
            Fitted.
        """
        candidates = self._checked()
        best, scores = None, []
        for candidate in candidates:
            trial = self.plain(candidate).fit(X, y, **params)
            scores.append(_held_out(trial.steps[-1][1]))
            if best is None or scores[-1] > max(scores[:-1]):
                best = trial
        assert best is not None
        scores_ = np.array(scores)
        chosen = dict(candidates[int(scores_.argmax())])
        self._calibrate_whole(best, self.plain(chosen), X, y, params)
        self.steps = best.steps  # only now, so that a fit that fails keeps the old model
        self.chosen_, self.candidate_scores_ = chosen, scores_
        return self

    def _calibrate_whole(
        self, fitted: Pipeline, unfitted: Pipeline, X: Any, y: Any, params: dict[str, Any]
    ) -> None:
        """Calibrate the model after a step that has used y with decisions of refitted pipelines."""
        name, model = step_with_targets(fitted), fitted[-1]
        if name is None:
            return
        model._step_with_targets_ = name
        warn_of_targets(self)
        if getattr(model, "calibration", None) is None:
            return
        folds = default_folds(kept_of(model, "calibration").training, FOLDS, classifier=True)
        unfitted[-1].set_params(calibration=None)
        options = {"cv": folds, "method": "decision_function", "params": params}
        decision = cross_val_predict(unfitted, X, y, **options)
        absent = decision <= np.finfo(decision.dtype).min  # of classes that a fold has not seen
        model._calibrate(np.where(absent, -np.inf, decision))

    @available_if(lambda self: hasattr(self.steps[-1][1], "transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then transform the training rows."""
        return self.fit(X, y, **params).transform(X)

    def _checked(self) -> Sequence[Mapping[str, Any]]:
        """The candidates; raises errors if they are invalid."""
        given = [{}] if self.candidates is None else self.candidates
        last = self.steps[-1][0]
        maps = isinstance(given, (list, tuple)) and all(isinstance(one, Mapping) for one in given)
        if not maps or not given or any(set(one) != set(given[0]) for one in given):
            raise ValueError(
                "candidates must be a list of at least one dict, all with the same parameters, got "
                f"{given!r:.200} instead: a parameter that is missing in one candidate would keep "
                "the value of another."
            )
        of_last = [name for name in given[0] if name.partition("__")[0] == last]
        if of_last:
            raise ValueError(
                f"candidates must be for steps before the last, got {of_last[0]!r}: the model "
                "itself "
                'tunes the parameters that are "tune" or lists, by the same score.'
            )
        return given


def step_with_targets(pipeline: Pipeline) -> str | None:
    """The name of the first step before the model that uses y, or has a part that does; None
    without one. A step of one's own whose `fit` has y=None is taken not to use it.
    """
    for name, step in pipeline.steps[:-1]:
        every = [step, *(step.get_params().values() if hasattr(step, "get_params") else ())]
        parts = [p for p in every if isinstance(p, BaseEstimator) and hasattr(p, "fit")]
        imputers = [part for part in parts if type(part).__module__.startswith("sklearn.impute.")]
        of_imputers = [id(value) for one in imputers for value in one.get_params().values()]
        if any(_uses_targets(part) for part in parts if id(part) not in of_imputers):
            return str(name)
    return None


def warn_of_targets(estimator: Any) -> None:
    """Warn if probabilities are calibrated on rows whose targets an earlier step has used."""
    if not isinstance(estimator, Pipeline) or step_with_targets(estimator) is None:
        return
    model = estimator[-1]
    ours = type(model).__module__.startswith(f"{__package__}.")
    calibrated = hasattr(model, "predict_proba") and getattr(model, "calibration", "") is not None
    whole = isinstance(estimator, TunedPipeline) and isinstance(model, KernelClassifier)
    if whole or not (ours and calibrated):
        return
    warnings.warn(
        f"the step {step_with_targets(estimator)!r} uses y, and the probabilities of the model "
        "after it are calibrated on rows whose targets it has used: they are too sure. "
        "fitonce.TunedPipeline(steps) with a single model calibrates on held-out rows of the whole "
        "pipeline.",
        UserWarning,
        stacklevel=depth_inside_package(),
    )


def _uses_targets(step: BaseEstimator) -> bool:
    """Whether y is needed by declaration, predicted, scored (SelectKBest), or has no default."""
    y, tags = signature(step.fit).parameters.get("y"), step.__sklearn_tags__()
    predicts = tags.estimator_type in ("classifier", "regressor")
    needed = tags.target_tags.required or predicts or hasattr(step, "score_func")
    return bool(needed or (y is not None and y.default is y.empty))


def _held_out(model: Any) -> float:
    """The held-out score of a fitted model, the mean over targets."""
    score = getattr(model, "best_score_", None)
    if score is None:
        raise TypeError(
            "the last step must be one of fitonce's estimators or committees, which have held-out "
            f"scores, got {type(model).__name__} instead: use GridSearchCV."
        )
    return float(np.mean(score))
