"""Block reflections, in every namespace: orthogonal, and true to the panel they reduce."""

from __future__ import annotations

import numpy as np
import pytest
from matrices import every_namespace, symmetric

from fitonce.core import reflections
from fitonce.core.reflections import (
    block_reflection,
    householder,
    product_factor,
    reflection_of_products,
)


@pytest.fixture(autouse=True)
def products_for_short_panels(monkeypatch):
    monkeypatch.setattr(reflections, "PRODUCTS_FROM", 1)


def reduces(P: np.ndarray, V, S, R) -> None:
    m, b = P.shape
    F = np.eye(m) - np.asarray(V) @ np.asarray(S) @ np.asarray(V).T
    np.testing.assert_allclose(F.T @ F, np.eye(m), atol=1e-13)
    np.testing.assert_allclose(F[:, :b] @ np.asarray(R), P, rtol=0, atol=1e-13 * np.abs(P).max())


@every_namespace
@pytest.mark.parametrize("reduction", [householder, block_reflection])
@pytest.mark.parametrize("kind", ["full", "zero", "apart", "rank one", "graded"])
def test_panel_is_reduced_by_an_orthogonal_matrix(kind, reduction, xp):
    P = symmetric(kind, 17)[:, :5]
    P[:, 3] = P[:, 1]
    reduces(P, *reduction(xp.asarray(P.copy())))


@every_namespace
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_panel_of_columns_apart_is_reduced_by_products(scale, xp):
    P = scale * np.random.default_rng(0).normal(size=(400, 6))
    reduces(P, *reflection_of_products(xp.asarray(P.copy())))


def nearly_dependent(gap: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    P = rng.normal(size=(300, 6))
    P[:, 5] = P[:, :5] @ rng.normal(size=5) + gap * rng.normal(size=300)
    return P


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_columns_nearly_dependent_are_reduced_all_the_same(gap):
    reduces(nearly_dependent(gap), *reflection_of_products(nearly_dependent(gap)))


def test_no_products_where_they_are_inaccurate():
    for P in (
        np.zeros((30, 4)),
        nearly_dependent(1e-9),
        -np.eye(30, 4),  # I + Q₁ is singular where the panel is already reduced, up to its sign
        np.eye(30, 4) @ np.diag([1.0, 1.0, -1.0, 1.0]),
    ):
        assert reflection_of_products(P) is None
        reduces(P, *block_reflection(P))


@every_namespace
def test_reflections_multiply(xp):
    rng = np.random.default_rng(2)
    panels = [rng.normal(size=(40 - 6 * k, 6)) for k in range(3)]
    made = [
        (householder if k == 1 else block_reflection)(xp.asarray(P)) for k, P in enumerate(panels)
    ]
    V = np.zeros((40, 18))
    expected = np.eye(40)
    for k, (v, s, _) in enumerate(made):
        V[6 * k :, 6 * k : 6 * k + 6] = np.asarray(v)
        own = V[:, 6 * k : 6 * k + 6]
        expected = expected @ (np.eye(40) - own @ np.asarray(s) @ own.T)
    S = np.asarray(product_factor(xp.asarray(V), [s for _, s, _ in made]))
    np.testing.assert_allclose(np.eye(40) - V @ S @ V.T, expected, atol=1e-13)
