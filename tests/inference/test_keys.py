"""Random orders by their number: the same everywhere, uniform, and inside their blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold

from fitonce import KernelFisherDiscriminant, KernelRidge
from fitonce.inference import permutation_test_score
from fitonce.inference.exchange import Draw, drawn_orders
from fitonce.inference.keys import BlockShuffle, Keys
from fitonce.inference.validity import make_exchange
from optional import require

HOST = np.empty(0)


def splitmix(seed: int, count: int) -> list[int]:
    """The generator as it is published, one number after the other."""
    state, numbers, modulus = seed, [], 2**64
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % modulus
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % modulus
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % modulus
        numbers.append(z ^ (z >> 31))
    return numbers


@pytest.mark.parametrize("seed", [0, 1234567, 2**64 - 5])
def test_numbers_are_those_of_the_published_generator(seed: int) -> None:
    found = Keys(seed).at(np.arange(40))
    assert [int(number) % 2**64 for number in found] == splitmix(seed, 40)
    assert splitmix(1234567, 1) == [6457827717110365317]  # from the reference implementation


def test_orders_stay_in_their_blocks_and_are_uniform() -> None:
    blocks = np.array([2, 0, 0, 1, 0, 2, 0])
    orders = BlockShuffle(blocks)(Keys(3), np.arange(24_000), HOST)
    assert np.all(blocks[orders] == blocks)
    assert np.all(np.sort(orders, axis=1) == np.arange(7))
    seen, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(seen) == 24 * 2  # 4! orders of one block times 2! of another
    assert np.sum((counts - 500.0) ** 2 / 500.0) < 90  # chi-squared, 47 degrees of freedom


def test_an_order_depends_on_its_number_alone() -> None:
    shuffle = BlockShuffle(np.zeros(50, dtype=int))
    together = shuffle(Keys(1), np.arange(10), HOST)
    np.testing.assert_array_equal(shuffle(Keys(1), np.array([7, 2]), HOST), together[[7, 2]])
    assert not np.array_equal(shuffle(Keys(2), np.array([7]), HOST), together[[7]])


@pytest.mark.parametrize("kind", ["rows", "within", "whole", "sign", "shift"])
def test_drawn_together_or_one_by_one(kind: str) -> None:
    y = np.tile([0, 1], 12)
    groups = np.repeat(np.arange(6), 4)
    exchange = make_exchange(kind, y, groups, None, True, 2)
    sigma = np.random.default_rng(0).permutation(24)
    draws = [Draw(exchange, Keys(5), number, sigma if number > 2 else None) for number in range(5)]
    together = drawn_orders(draws, HOST)
    for number, draw in enumerate(draws):
        np.testing.assert_array_equal(draw.indices, together.indices[number])
    tau = exchange.orders(Keys(5), np.arange(5), HOST).indices
    np.testing.assert_array_equal(together.indices[4], tau[4][sigma])
    assert len(np.unique(tau, axis=0)) >= 4  # of few that there are


CASES = {
    "stratified": (StratifiedKFold(4), ["accuracy", "balanced_accuracy", "roc_auc"], 2),
    "three classes": (KFold(5), ["accuracy", "f1_macro", "confusion_matrix"], 3),
    "one by one": (LeaveOneOut(), ["accuracy"], 2),
    "numbers": (KFold(4), ["r2", "neg_mean_absolute_error", "correlation"], 0),
}


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("permute", ["cosets", "within-folds"])
def test_the_same_null_on_host_and_device(case: str, permute: str) -> None:
    torch = require("torch")
    cv, scoring, n_classes = CASES[case]
    if permute == "within-folds" and case == "one by one":
        permute = "free"
    rng = np.random.default_rng(0)
    n = 63  # folds of unequal size
    X = rng.normal(size=(n, 3))
    X[1:20:2] = X[0:19:2]  # equal rows, whose decisions are tied
    y = rng.normal(size=n) if not n_classes else np.arange(n) % n_classes
    model = KernelFisherDiscriminant(gamma=0.2, alpha=0.5) if n_classes else KernelRidge(gamma=0.2)
    model.set_params(alpha=0.5)
    options = {"cv": cv, "scoring": scoring, "n_permutations": 30, "permute": permute}
    host = permutation_test_score(model, X, y, **options)
    device = permutation_test_score(model, torch.asarray(X), y, **options)
    for name in scoring:
        np.testing.assert_allclose(device.null[name], host.null[name], atol=1e-9)
