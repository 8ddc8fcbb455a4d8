"""Names, numbers and short phrases for all displays of an assessment, so that a terminal and a
report use the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels import families

SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "r2": "R²",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
}
MODELS = {
    "KernelFisherDiscriminant": "kernel Fisher discriminant",
    "LeastSquaresSVC": "least-squares support vector machine",
    "KernelRidge": "kernel ridge regression",
    "KernelCommitteeClassifier": "committee of kernel Fisher discriminants",
    "KernelCommitteeRegressor": "committee of kernel ridge models",
}
LONGER = {
    "roc_auc": "area under the ROC curve",
    "auc": "area under the ROC curve",
    "error": "error rate",
}
BASELINES = {"classification": "majority class", "regression": "the mean"}
EXCHANGED = {
    "rows": "between rows",
    "within": "within groups",
    "whole": "between whole groups",
    "whole-unequal": "between whole groups of any size",
    "sign": "within pairs",
    "shift": "by shifts",
}
MODES = {
    "cosets": "with their folds",
    "within-folds": "inside each fold",
    "resplit": "with new folds",
    "free": "across folds",
}


def score_name(name: Any) -> str:
    """The long name of a metric or criterion."""
    if not isinstance(name, str):
        return "user-defined criterion"
    return (SCORES | LONGER).get(name, name.replace("_", " "))


def model_name(model: Any) -> str:
    return MODELS.get(type(model).__name__, type(model).__name__)


def count(number: int) -> str:
    return f"{int(number):,}"


def percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%" if np.isfinite(share) else "–"


def score_text(value: float, share: bool) -> str:
    """The main score as text: an accuracy, which is a share, or R²."""
    return percent(value) if share else f"{value:.3f}"


def interval_text(score: Any, share: bool) -> str:
    """The interval of an `Estimate` of the main score; empty if it has none."""
    if not np.isfinite(score.low):
        return ""
    low, high = (score_text(end, share) for end in (score.low, score.high))
    return f"{100 * score.level:g}\u00a0% interval {low} to {high}"


def number(value: float) -> str:
    """A score with three decimals; a dash if there is none."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.4g}"


def p_value(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") if value >= 1e-4 else f"{value:.1g}"


def chosen_value(value: Any) -> str:
    """A parameter: a word, a number, or the range if there is one per feature."""
    if isinstance(value, str):
        return value
    if np.ndim(value) > 0:
        return f"{np.min(value):.3g} to {np.max(value):.3g} by feature"
    return f"{float(value):.3g}"


def setting(value: Any, values: bool = True) -> str:
    """The value of a parameter, in full if it is short. Without `values`, the contents of arrays,
    lists and other objects are not shown, since they may be data.
    """
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if not values and not isinstance(value, (str, bool, int, type(None))):
        return _described(value)
    if isinstance(value, np.ndarray):
        return f"[{listed([f'{number:.4g}' for number in value.reshape(-1)], 6)}]"
    return shortened(value if isinstance(value, str) else repr(value), 120)


def _described(value: Any) -> str:
    if isinstance(value, dict):
        inside = [f"{shortened(k, 40)}={setting(v, values=False)}" for k, v in value.items()]
        return f"{{{', '.join(inside)}}}"
    if hasattr(value, "shape"):
        return f"array of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    return shortened(getattr(value, "__name__", type(value).__name__))


def kernel_text(kernel: Any) -> str:
    """The name of a kernel, or a list of those to choose from."""
    found = families(kernel)
    if not isinstance(found, tuple):
        return f"{found} kernel"
    return f"the best of the kernels {listed(found, len(found))}"


def spread(values: Sequence[Any]) -> str:
    """Values with how often each occurred, or their range if there are many."""
    counts = Counter(chosen_value(value) for value in values)
    if len(counts) == 1:
        return f"{next(iter(counts))} in all {len(values)}"
    if len(counts) > 4 and not any(isinstance(value, str) for value in values):
        low, middle, high = (chosen_value(f(values)) for f in (np.min, np.median, np.max))
        return f"{low} to {high}, median {middle}"
    return ", ".join(f"{value} ({count} of {len(values)})" for value, count in counts.most_common())


def relabellings(test: Any) -> str:
    """The number of labelings in a permutation test, and whether p could be smaller."""
    done = test.n_permutations_done
    count = f"all {done + 1:,} labelings" if test.exact else f"{done:,} permutations"
    smallest = test.pvalue <= 1.0 / (done + 1)
    return f"{count}, the smallest possible p" if smallest else count


def exchanged(test: Any) -> str:
    """What the permutations of a test exchange, and where."""
    return f"{EXCHANGED.get(test.exchange, test.exchange)}, {MODES[test.mode]}"


def first_of(repeats: int) -> str:
    """A note for results by row, which come from the first repeat; scores are means over
    repeats.
    """
    return f" (first of {repeats} repeats)" if repeats > 1 else ""


def listed(names: Sequence[Any], most: int) -> str:
    """The first of some names."""
    return ", ".join(map(str, names[:most])) + (", …" if len(names) > most else "")


def joined(names: Sequence[str], most: int = 6) -> str:
    """Names joined for a sentence, with the number of further ones."""
    shown = names if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def shortened(name: Any, limit: int = 80) -> str:
    """A name as one line of text; control characters and lone surrogates become question marks."""
    text = "".join(
        letter if letter.isprintable() or letter == " " else "\ufffd" for letter in str(name)
    )
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"
