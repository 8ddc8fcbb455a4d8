"""Held-out outputs of all splits at once on route one, and their scores.

scikit-learn's loop takes a millisecond per split, whatever happens inside it. If every split has a
closed form, predictions are assembled here, and for the scorers below also the scores. The numbers
are the same, since these scorers use only labels and predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..core.readout import labels_of
from .metrics import LABEL_METRICS, NUMBER_METRICS, Metric, Outputs, Scored
from .stand_in import Shared, Split

LABEL_SCORES = ("accuracy", "balanced_accuracy")
NUMBER_SCORES = (
    "r2",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
)


@dataclass(frozen=True)
class HeldOutBatch:
    """The main output for the test rows of every split."""

    shared: Shared
    tests: list[np.ndarray]
    outputs: list[np.ndarray]

    @classmethod
    def of(cls, shared: Shared | None, splits: list[Split]) -> HeldOutBatch | None:
        """None if a split has no closed form."""
        if shared is None or shared.decomposed is None:
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
        if known is None or not all(len(test) for test in self.tests):
            return None
        runs = [self._run(list(run)) for _, run in groupby(range(len(self.tests)), self._size)]
        if not all(_undisputed(name, run) for name in known for run in runs):
            return None
        return {
            key: np.concatenate([_metric(name)(run)[0] for run in runs])
            for key, name in zip(_keys(scoring), known, strict=True)
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


def known_scores(scoring: Any, *, classifier: bool) -> list[str] | None:
    """The scorers by name if all of them need only labels and predictions, else None."""
    names = list(scoring.values()) if isinstance(scoring, Mapping) else scoring
    names = names if isinstance(names, (list, tuple)) else [names]
    default = "accuracy" if classifier else "r2"
    named = [default if name is None else name for name in names]
    known = LABEL_SCORES if classifier else NUMBER_SCORES
    return named if all(isinstance(name, str) and name in known for name in named) else None


def _keys(scoring: Any) -> list[str]:
    if isinstance(scoring, (Mapping, list, tuple)):
        return list(scoring)
    return ["score"]


def _metric(name: str) -> Metric:
    return LABEL_METRICS[name] if name in LABEL_SCORES else NUMBER_METRICS[name]


def _undisputed(name: str, run: Scored) -> bool:
    """Whether the batched score equals scikit-learn's, including its warnings."""
    if name != "balanced_accuracy":
        return True
    _, true, predicted = run.per_class  # a predicted class that no row of the fold has
    return bool(np.all((predicted == 0) | (true > 0)))
