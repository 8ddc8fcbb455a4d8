"""How far the estimators on a GPU are from NumPy: all three, both penalties, weights, folds, exact
and landmarks, fixed and tuned.

Needs torch with CUDA; CuPy is tried where it is installed. Reported is the largest difference of
decisions (predictions) and held-out values, relative to the largest of them. The exact model is
sent through the band form from 100 rows on, so that it is the one compared.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import common
import numpy as np
import torch

import fitonce.tuning.decompose as decompose
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.core.arrays import to_numpy
from fitonce.estimators.fitted import held_out_output

N = 300


def output(model: Any, X: Any) -> np.ndarray:
    return to_numpy(
        model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    )


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def compare(move: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    rng = np.random.RandomState(0)
    X, weights = rng.randn(N, 4), rng.rand(N) + 0.2
    two = (X[:, 0] * X[:, 1] + 0.4 * rng.randn(N) > 0).astype(int)
    three = np.abs(X[:, :3]).argmax(axis=1)
    numbers = X @ [1.0, 2.0, 3.0, 4.0] + rng.randn(N)
    models = [
        (KernelFisherDiscriminant, two),
        (KernelFisherDiscriminant, three),
        (LeastSquaresSVC, two),
        (KernelRidge, numbers),
    ]
    settings = itertools.product(
        models, ("function", "dual"), (None, weights), (None, 40, X[:30]), (None, 4), (0.5, "tune")
    )
    worst: dict[str, float] = {}
    count = other_alpha = 0
    for (kind, y), penalty, w, landmarks, cv, alpha in settings:
        parameters = {
            "gamma": 0.3,
            "alpha": alpha,
            "penalty": penalty,
            "landmarks": landmarks,
            "cv": cv,
            "random_state": 0,
        }
        host = kind(**parameters).fit(X, y, sample_weight=w)
        there = kind(**parameters).fit(
            move(X), move(y), sample_weight=None if w is None else move(w)
        )
        count += 1
        if host.alpha_ != there.alpha_:
            other_alpha += 1
            continue
        name = (
            f"{'tuned' if alpha == 'tune' else 'fixed'}, "
            f"{'exact' if landmarks is None else 'landmarks'}"
        )
        error = max(
            difference(output(there, move(X)), output(host, X)),
            difference(held_out_output(there), held_out_output(host)),
        )
        worst[name] = max(worst.get(name, 0.0), error)
    return {"models": count, "another alpha chosen": other_alpha, "largest difference": worst}


def main() -> None:
    warnings.simplefilter("ignore")
    decompose.BAND_FROM = 100
    results: dict[str, Any] = {"device": torch.cuda.get_device_name(), "rows": N}
    results["torch"] = compare(lambda A: torch.asarray(A, device="cuda"))
    try:
        import cupy
    except ImportError:
        pass
    else:
        results["cupy"] = compare(cupy.asarray)
    common.write(__file__, results)
    print({name: results[name] for name in ("torch", "cupy") if name in results})


if __name__ == "__main__":
    main()
