"""What the tests of ONNX graphs share."""

from __future__ import annotations

import numpy as np
import onnxruntime

from fitonce import LeastSquaresSVC

KERNELS = {
    "rbf": {"gamma": 0.2, "alpha": 0.1},
    "linear": {"alpha": 0.1},
    "poly": {"gamma": 0.1, "degree": 3, "coef0": 1.0, "alpha": 1.0},
    "laplacian": {"gamma": 0.2, "alpha": 0.1},
    "exponential": {"gamma": 0.3, "alpha": 0.1},
    "matern32": {"gamma": 0.3, "alpha": 0.1},
    "matern52": {"gamma": 0.3, "alpha": 0.1},
    "cosine": {"alpha": 0.1},
    "sigmoid": {"gamma": 0.02, "coef0": 0.1, "alpha": 1.0, "penalty": "dual"},
}


def data(n=70, n_classes=2, seed=0):
    """Unbalanced classes away from the origin, with duplicated rows and a row of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 2.0
    noisy = X[:, 0] + 0.5 * rng.normal(size=n)
    y = np.digitize(noisy, [2.6] if n_classes == 2 else [1.6, 2.9])
    X[7], X[11] = X[6], 0.0
    return X, y


def svc():
    """A model that is not tuned, for tests of what stands before it."""
    return LeastSquaresSVC(gamma=0.2, alpha=0.1)


def run(graph, X, dtype=np.float32):
    """Outputs by name; X an array, or the feeds."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = X if isinstance(X, dict) else {"X": np.asarray(X, dtype=dtype)}
    return dict(
        zip(
            [output.name for output in session.get_outputs()], session.run(None, feeds), strict=True
        )
    )


def relative(found, expected):
    expected = np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


def assert_agrees(graph, model, X, tolerance, dtype=np.float32, feeds=None):
    """Every output on rows as the graph sees them, labels included."""
    outputs = run(graph, X if feeds is None else feeds, dtype)
    seen = np.asarray(X, dtype=dtype).astype(np.float64) if feeds is None else X
    if "prediction" in outputs:
        assert set(outputs) == {"prediction"}
        assert relative(outputs["prediction"], model.predict(seen)) <= tolerance
        return
    assert relative(outputs["decision"], model.decision_function(seen)) <= tolerance
    assert ("probabilities" in outputs) == hasattr(model, "predict_proba")
    if "probabilities" in outputs:
        assert relative(outputs["probabilities"], model.predict_proba(seen)) <= tolerance
    assert np.array_equal(outputs["label"], model.predict(seen))
