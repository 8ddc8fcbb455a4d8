"""Default fits on awkward features: literal refits agree, with room to spare."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC

FEATURES = {
    "heavy tails": lambda rng, n: rng.standard_t(1.2, size=(n, 3)),
    "duplicates": lambda rng, n: rng.normal(size=(n, 4))[rng.integers(n // 2, size=n)],
    "uint8": lambda rng, n: rng.integers(0, 256, size=(n, 3)).astype(np.uint8),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("model", [KernelFisherDiscriminant(), LeastSquaresSVC(), KernelRidge()])
def test_verify_agrees(model, kind, seed):
    rng = np.random.default_rng(seed)
    X = FEATURES[kind](rng, 50)
    first = X[:, 0].astype(float)
    target = first + rng.normal(size=50)
    if not isinstance(model, KernelRidge):
        target = target > np.median(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of these are told to be doubtful
        check = model.fit(X, target).verify(n_refits=3, random_state=0)
    assert check.passed, check
    assert check.max_deviation < 0.1 * check.tolerance
