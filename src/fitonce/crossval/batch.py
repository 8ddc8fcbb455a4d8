"""Held-out outputs of all splits at once on route one, and their scores.

scikit-learn's loop takes a millisecond per split, whatever happens inside it. If every split has a
closed form, predictions are assembled here, and for the scorers below also the scores. The numbers
are the same, since these scorers use only labels and predictions.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..core.readout import labels_of
from ..core.splits import Split
from .lookup import FoldContext
from .metrics import LABEL_METRICS, NUMBER_METRICS, Outputs, Scored

KNOWN = {  # for classifiers, and for regression
    True: ("accuracy", "balanced_accuracy"),
    False: (
        "r2",
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        "neg_mean_absolute_error",
    ),
}
METRICS = LABEL_METRICS | NUMBER_METRICS


@dataclass(frozen=True)
class HeldOutBatch:
    """The main output for the test rows of every split."""

    shared: FoldContext
    tests: list[np.ndarray]
    outputs: list[np.ndarray]

    @classmethod
    def of(cls, shared: FoldContext | None, splits: list[Split]) -> HeldOutBatch | None:
        """None if a split has no closed form, or no test rows, which scikit-learn tells."""
        if shared is None or shared.decomposed is None or not all(len(test) for _, test in splits):
            return None
        method = "predict" if shared.decomposed.codes is None else "decision_function"
        outputs = []
        for train, test in splits:
            model = shared.model_of(train)
            if model is None:
                return None
            outputs.append(model(test, method))
        return cls(shared, [test for _, test in splits], outputs)

    def of_method(self, method: str) -> list[np.ndarray]:
        """Outputs of every split, as returned by `predict` or `decision_function`."""
        classes = self._classes
        if classes is None or method != "predict":
            return self.outputs
        return [labels_of(output, classes) for output in self.outputs]

    @property
    def _classes(self) -> np.ndarray | None:
        decomposed = self.shared.decomposed
        return None if decomposed is None else decomposed.setup.labels.classes

    def scores(self, scoring: Any) -> dict[str, np.ndarray] | None:
        """Scores (k,) by name, or None if scikit-learn's loop has to compute them."""
        known = known_scores(scoring, classifier=self._classes is not None)
        if known is None:
            return None
        runs = [self._run(list(run)) for _, run in groupby(range(len(self.tests)), self._size)]
        if "balanced_accuracy" in known.values() and not all(map(_undisputed, runs)):
            return None
        return {
            key: np.concatenate([METRICS[name](run)[0] for run in runs])
            for key, name in known.items()
        }

    def _size(self, number: int) -> int:
        return len(self.tests[number])

    def _run(self, numbers: list[int]) -> Scored:
        """Splits of the same size, stacked: values (1, k, m) or (1, k, c, m), with the truth."""
        decomposed = self.shared.decomposed
        assert decomposed is not None
        values = np.stack([self.outputs[number] for number in numbers])[None]
        truth = decomposed.setup.data.targets if decomposed.codes is None else decomposed.codes
        seen = np.stack([truth[self.tests[number]] for number in numbers])[None]
        values, seen = (np.moveaxis(A, 2, 3) if A.ndim == 4 else A for A in (values, seen))
        return Scored(Outputs(values, seen), decomposed.readout.n_classes or None)


def known_scores(scoring: Any, *, classifier: bool) -> dict[Any, str] | None:
    """The scorers by name if all of them need only labels and predictions, else None."""
    several = isinstance(scoring, (list, tuple))
    given = scoring if isinstance(scoring, Mapping) else {"score": scoring}
    given = {name: name for name in scoring} if several else given
    default = "accuracy" if classifier else "r2"
    named = {key: default if name is None else name for key, name in given.items()}
    known = all(isinstance(name, str) and name in KNOWN[classifier] for name in named.values())
    return named if known and not (several and len(named) < len(scoring)) else None


def _undisputed(run: Scored) -> bool:
    """Whether scikit-learn's balanced accuracy would warn of nothing: every predicted class is
    among the rows of its fold.
    """
    _, true, predicted = run.per_class
    return bool(np.all((predicted == 0) | (true > 0)))


def is_error_score(given: Any) -> bool:
    """Whether scikit-learn allows this value; it raises its own error otherwise."""
    return isinstance(given, numbers.Real) or (isinstance(given, str) and given == "raise")
