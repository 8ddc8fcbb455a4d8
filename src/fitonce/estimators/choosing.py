"""Preprocessing chosen by the held-out score of the model behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if


class TunedPipeline(Pipeline):
    """A pipeline whose steps before the model are chosen by the model's held-out score.

    `fit` fits one pipeline for each candidate and keeps the one whose model has the best
    `best_score_`: the score of rows left out in closed form, by leave-one-out or by the model's own
    `cv` and groups. The choice is made again on every training set of a cross-validation and under
    every permutation of a test, so that scores and p-values of the whole are honest.

    Steps are fitted on all training rows before rows are left out of the model, as in every
    pipeline. So candidates should not look at y: a selection of features by y would be chosen by a
    score that is too good.

    Parameters
    ----------
    steps : list of (str, estimator)
        As for scikit-learn's Pipeline. The last is one of fitonce's estimators or committees.
    candidates : list of dict, default=None
        Parameters of steps before the last, as `set_params` takes them; all with the same names.
        Of equal scores the first wins. None for a pipeline without a choice.
    memory, verbose
        As for scikit-learn's Pipeline.

    Attributes
    ----------
    chosen_ : dict
        The candidate that was taken. The steps have these parameters after `fit`.
    candidate_scores_ : array of shape (n_candidates,)
        `best_score_` of each one's model; the mean over targets, where these have one each.

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
        """A pipeline without a choice: unfitted, of one candidate, by default the first."""
        if candidate is None:
            candidate = self.candidates[0] if self.candidates else {}
        made = Pipeline(
            [(name, clone(step, safe=False)) for name, step in self.steps],
            memory=self.memory,
            verbose=self.verbose,
        )
        return made.set_params(**candidate)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit every candidate, and keep the best.

        Parameters
        ----------
        X, y
            As for the steps.
        **params
            As for scikit-learn's Pipeline.

        Returns
        -------
        self
        """
        candidates = self._checked()
        best, scores = None, []
        for candidate in candidates:
            trial = self.plain(candidate).fit(X, y, **params)
            scores.append(_held_out(trial.steps[-1][1]))
            if best is None or scores[-1] > max(scores[:-1]):
                best = trial
        assert best is not None
        self.steps = best.steps  # now, so that a fit that fails leaves the old model whole
        scores_ = np.array(scores)
        self.chosen_, self.candidate_scores_ = dict(candidates[int(scores_.argmax())]), scores_
        return self

    @available_if(lambda self: hasattr(self.steps[-1][1], "transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, then transform the training rows."""
        return self.fit(X, y, **params).transform(X)

    def _checked(self) -> Sequence[Mapping[str, Any]]:
        given = [{}] if self.candidates is None else self.candidates
        last = self.steps[-1][0]
        maps = isinstance(given, (list, tuple)) and all(isinstance(one, Mapping) for one in given)
        if not maps or not given or any(set(one) != set(given[0]) for one in given):
            raise ValueError(
                "candidates must be a list of dicts that all give values to the same parameters, "
                f"at least one, got {given!r:.200} instead: what a candidate leaves open would be "
                "left from another."
            )
        of_last = [name for name in given[0] if name.partition("__")[0] == last]
        if of_last:
            raise ValueError(
                f"candidates must be for steps before the last, got {of_last[0]!r}: the model "
                'tunes its own parameters, where they are "tune" or lists, by the same score.'
            )
        return given


def _held_out(model: Any) -> float:
    score = getattr(model, "best_score_", None)
    if score is None:
        raise TypeError(
            "the last step must be one of fitonce's estimators or committees, which judge "
            f"themselves by rows left out, got {type(model).__name__} instead: use GridSearchCV."
        )
    return float(np.mean(score))
