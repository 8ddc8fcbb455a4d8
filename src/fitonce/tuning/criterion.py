"""What a search minimizes: our own losses by name, scikit-learn's scorers, or a user's function."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, get_scorer, get_scorer_names, make_scorer
from sklearn.utils.metaestimators import available_if

from ..core.criteria import (
    BY_TARGET,
    LOSSES,
    OF_THE_FIT,
    HeldOutScores,
    mean_over_folds,
    smoothed_error,
)
from ..core.readout import labels_of
from ..core.spectrum import row_blocks

SCORER = type(make_scorer(accuracy_score))  # scorers that only call the estimator's methods


class HeldOutModel(BaseEstimator):
    """A fitted estimator for one test set whose outputs are known: decisions where it has
    `classes_`, else predictions.

    `probabilities` makes its probabilities when they are asked for; without it there are none.
    """

    def __init__(
        self,
        outputs: np.ndarray,
        classes: np.ndarray | None,
        probabilities: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.outputs, self.classes_, self.probabilities = outputs, classes, probabilities

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    @available_if(lambda known: known.classes_ is not None)
    def decision_function(self, X: Any) -> np.ndarray:
        return self.outputs

    def predict(self, X: Any) -> np.ndarray:
        return self.outputs if self.classes_ is None else labels_of(self.outputs, self.classes_)

    @available_if(lambda known: known.probabilities is not None)
    def predict_proba(self, X: Any) -> np.ndarray:
        return cast(Callable[[], np.ndarray], self.probabilities)()

    def judged(self, scorer: Callable[..., Any], y: np.ndarray, **params: Any) -> Any:
        """What a scorer of scikit-learn's says of the outputs."""
        return scorer(self, np.zeros((len(y), 1)), y, **params)


SELECTION_ELEMENTS = 1 << 22  # held-out values that a criterion looks at together
AUTO = "auto"
# the score at a loss of zero; 0 for all others
PERFECT = {"auc": 1.0, "r2": 1.0, "correlation": 1.0}

BOTH = "squared_error+log_loss"
# in every output
SMOOTH = ("log_loss", "brier", "squared_error", BOTH, "r2", "correlation", "smoothed_error")


@dataclass(frozen=True)
class Criterion:
    """A criterion as given: one of our names, a scorer's name or object, or callable(y, held_out).

    `pooled` looks at all held-out rows together, else at each split and takes the mean.
    """

    given: Any
    compression: float = 1.0
    pooled: bool = True

    @property
    def name(self) -> str | None:
        """Our own name for it, if it is one of ours and pooled."""
        return self.given if isinstance(self.given, str) and self.pooled else None

    @property
    def of_the_fit(self) -> bool:
        """Whether it looks at the fit of all rows, not at held-out values."""
        return isinstance(self.given, str) and self.given in OF_THE_FIT

    @property
    def by_target(self) -> bool:
        """Whether it judges every target by itself."""
        return isinstance(self.given, str) and self.given in BY_TARGET

    @property
    def perfect(self) -> float:
        """The score at a loss of zero."""
        return PERFECT.get(self.given, 0.0) if isinstance(self.given, str) else 0.0

    @property
    def ranks(self) -> bool:
        """Whether it may compare outputs with each other or with a threshold."""
        return not isinstance(self.given, str) or self.given not in SMOOTH

    def differentiable(self, n_classes: int) -> bool:
        """Whether it is a smooth function of held-out values or of the fit."""
        of_margins = self.name == "smoothed_error" and n_classes == 2
        return self.of_the_fit or self.name == "squared_error" or of_margins

    def losses(self, scores: HeldOutScores) -> np.ndarray:
        """The loss of every candidate and target (m, t), one column if targets are judged together.

        A few candidates at a time: temporaries are several times the size of what they look at.
        """
        n_candidates, *shape = scores.predicted.shape
        step = max(1, SELECTION_ELEMENTS // max(1, int(np.prod(shape))))
        loss = self._loss() if self.pooled else partial(mean_over_folds, self._loss())
        losses = np.concatenate(
            [loss(scores.candidates(part)) for part in row_blocks(n_candidates, step)]
        )
        return losses.reshape(n_candidates, -1)

    def _loss(self) -> Callable[[HeldOutScores], np.ndarray]:
        """The function from held-out outputs to a loss for every candidate."""
        if self.given == "smoothed_error" and isinstance(self.given, str):
            return lambda scores: smoothed_error(scores, self.compression)
        if isinstance(self.given, str) and self.given in LOSSES:
            return LOSSES[self.given]
        scorer = get_scorer(self.given) if isinstance(self.given, str) else self.given
        score = _scored if isinstance(scorer, SCORER) else _called
        return lambda scores: np.array(
            [-_number(score(scorer, scores, j)) for j in range(len(scores))]
        )


def _number(score: Any) -> float:
    """What a criterion of the user's returned, as one number."""
    if np.ndim(score) == 0 and isinstance(score, (numbers.Real, np.ndarray, np.bool_)):
        return float(score)
    raise TypeError(
        f"criterion must return one number for each candidate, got {score!r:.100} instead: the "
        "largest is chosen. Does the function return a mean over the rows?"
    )


def resolved(given: Any, n_classes: int) -> Any:
    """The criterion that "auto" stands for: of two classes the squared error of the targets and the
    log-loss together, of more the Brier score; any other as it is.
    """
    if not (isinstance(given, str) and given == AUTO):
        return given
    return BOTH if n_classes == 2 else "brier"


def is_scorer_name(name: Any) -> bool:
    return isinstance(name, str) and name in get_scorer_names()


def wants_an_estimator(criterion: Callable[..., Any]) -> bool:
    """Whether a callable takes (estimator, X, y), as `scoring` does, and is no scorer of
    scikit-learn's, which looks at outputs only.
    """
    if isinstance(criterion, SCORER):
        return False
    try:
        inspect.signature(criterion).bind("y", "held out")
    except TypeError:
        return True
    except ValueError:  # a built-in function that does not say what it takes
        return False
    return False


def _called(function: Callable[[Any, Any], float], scores: HeldOutScores, j: int) -> float:
    """A user's function of the truth and the held-out output, higher is better."""
    return function(np.asarray(scores.y), scores.output(j))


def _scored(scorer: Any, scores: HeldOutScores, j: int) -> Any:
    """scikit-learn's scorer on a stand-in that knows the held-out output."""

    def probabilities() -> np.ndarray:
        return np.asarray(scores.candidates(slice(j, j + 1)).probabilities()[0])

    weights = {} if np.all(scores.weights == 1.0) else {"sample_weight": scores.weights}
    known = HeldOutModel(scores.output(j), scores.class_names, probabilities)
    return known.judged(scorer, np.asarray(scores.y), **weights)
