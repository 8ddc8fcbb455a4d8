"""Corrections over positions.

Against plain loops, under the null hypothesis, and with an effect in a known place.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold

from fitonce import KernelFisherDiscriminant, ValidityWarning
from fitonce.positions import PositionTest, group_test, permutation_test, spheres
from fitonce.positions.corrections import SIDES, Rules
from fitonce.positions.result import significance
from fitonce.positions.slices import edges_of

LINEAR = KernelFisherDiscriminant("linear", alpha=1.0)


def smooth_noise(
    rng: np.random.Generator, rows: int, q: int, correlation: float = 0.8
) -> np.ndarray:
    """Rows of an autoregressive process: neighbouring positions depend on each other."""
    noise = rng.normal(size=(rows, q))
    for position in range(1, q):
        noise[:, position] = (
            correlation * noise[:, position - 1] + np.sqrt(1 - correlation**2) * noise[:, position]
        )
    return noise


def judged(
    score: np.ndarray,
    null: np.ndarray,
    alternative: str = "greater",
    *,
    standardized: bool = False,
    **options: Any,
) -> dict[str, Any]:
    given_edges = options.pop("edges", None)
    edges = edges_of(None, score.shape) if given_edges is None else given_edges
    rules = Rules(
        alternative,
        options.pop("cluster_pvalue", 0.05),
        options.pop("cluster_score", None),
        edges,
        "cluster_score",
    )
    return significance(score, null, rules, standardized)


# ---- plain loops ---------------------------------------------------------------------------------


def plain(
    score: np.ndarray,
    null: np.ndarray,
    alternative: str,
    level: float,
    neighbours: dict[int, set[int]],
) -> dict[str, Any]:
    """The definitions, one position, permutation and cluster at a time.

    Scores closer than 1e-9 are equal.
    """
    rows = np.vstack([score, null])
    P1, q = rows.shape
    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    extreme = {"greater": rows, "less": -rows, "two-sided": np.abs(rows - centre)}[alternative]
    own = np.array(
        [
            [
                sum(extreme[other, j] >= extreme[row, j] - 1e-9 for other in range(P1)) / P1
                for j in range(q)
            ]
            for row in range(P1)
        ]
    )
    largest = extreme.max(axis=1)
    pvalue_max = [sum(largest[1:] >= extreme[0, j] - 1e-9) for j in range(q)]
    z = (rows - centre) / scale

    def clusters(row: int) -> list[tuple[frozenset[int], float]]:
        found = []
        for side in {"greater": [1], "less": [-1], "two-sided": [1, -1]}[alternative]:
            left = {j for j in range(q) if own[row, j] <= level and side * z[row, j] > 0}
            while left:
                cluster, new = set(), {left.pop()}
                while new:
                    cluster |= new
                    new = {other for j in new for other in neighbours[j]} & left
                    left -= new
                found.append((frozenset(cluster), float(sum(z[row, j] for j in cluster))))
        return found

    heaviest = [max([abs(mass) for _, mass in clusters(row)], default=0.0) for row in range(P1)]
    return {
        "pvalue": own[0],
        "pvalue_max": (1 + np.array(pvalue_max)) / P1,
        "clusters": {
            members: (mass, (1 + sum(np.array(heaviest[1:]) >= abs(mass) - 1e-9)) / P1)
            for members, mass in clusters(0)
        },
    }


@pytest.mark.pairwise
@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("adjacency", ["line", "given"])
def test_corrections_are_their_definitions(alternative, ties, adjacency):
    rng = np.random.default_rng(0)
    q = 14
    edges = edges_of(None, (q,))
    if adjacency == "given":
        edges = edges_of(sp.random(q, q, 0.12, random_state=1, format="csr"), (q,))
    neighbours = {j: {int(a + b - j) for a, b in edges if j in (a, b)} for j in range(q)}
    n_clusters = 0
    for _ in range(6):
        rows = smooth_noise(rng, 60, q)
        rows[0, 3:7] += rng.choice([-2.0, 2.0])
        rows = np.round(rows, 1) if ties else rows
        result = judged(rows[0], rows[1:], alternative, edges=edges, cluster_pvalue=0.2)
        expected = plain(rows[0], rows[1:], alternative, 0.2, neighbours)
        np.testing.assert_allclose(result["pvalue"], expected["pvalue"])
        np.testing.assert_allclose(result["pvalue_max"], expected["pvalue_max"])
        np.testing.assert_allclose(
            result["pvalue_fdr"], scipy.stats.false_discovery_control(expected["pvalue"])
        )
        found = {
            frozenset(cluster.positions.tolist()): (cluster.mass, cluster.pvalue)
            for cluster in result["clusters"]
        }
        assert found.keys() == expected["clusters"].keys()
        for members, (mass, pvalue) in found.items():
            assert (mass, pvalue) == pytest.approx(expected["clusters"][members])
            assert all(result["pvalue_cluster"][j] == pytest.approx(pvalue) for j in members)
        outside = set(range(q)) - set().union(*found)
        assert all(result["pvalue_cluster"][j] == 1.0 for j in outside)
        masses = [abs(cluster.mass) for cluster in result["clusters"]]
        assert masses == sorted(masses, reverse=True)
        n_clusters += len(found)
    assert n_clusters > 3


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from(list(SIDES)), st.integers(2, 30), st.integers(1, 12))
def test_laws(seed, alternative, P, q):
    """Corrected p-values are never smaller.

    Order of positions and shifts of scores do not matter.
    """
    rng = np.random.default_rng(seed)
    rows = np.round(smooth_noise(rng, P + 1, q), int(rng.integers(0, 3)))
    result = judged(rows[0], rows[1:], alternative)
    assert np.all(result["pvalue"] >= 1 / (P + 1)) and np.all(result["pvalue_max"] <= 1)
    assert np.all(result["pvalue_max"] >= result["pvalue"] - 1e-12) and np.all(
        result["pvalue_fdr"] >= result["pvalue"] - 1e-12
    )
    moved = judged(rows[0] + 3.0, rows[1:] + 3.0, alternative)
    back = judged(rows[0, ::-1], rows[1:, ::-1], alternative)
    for name in ("pvalue", "pvalue_max", "pvalue_cluster"):
        np.testing.assert_allclose(moved[name], result[name])
        np.testing.assert_allclose(back[name][::-1], result[name])
    # the labelling that is most extreme anywhere has the smallest possible corrected p-value there
    best = np.argmax(np.where(result["pvalue_max"] == result["pvalue_max"].min(), 1, 0))
    assert result["pvalue_max"][best] == result["pvalue_max"].min()


def test_a_threshold_by_score_and_grids():
    rng = np.random.default_rng(0)
    rows = smooth_noise(rng, 100, 12).reshape(100, 3, 4)
    rows[0, 1, 1:3] = 3.0
    result = judged(rows[0], rows[1:], cluster_score=3.0)
    assert np.all(result["threshold"] == 3.0)  # a score equal to the threshold passes
    (cluster,) = [cluster for cluster in result["clusters"] if cluster.size == 2]
    np.testing.assert_array_equal(rows[0][cluster.positions], [3.0, 3.0])
    assert "2 positions" in repr(cluster)
    below = judged(-rows[0], -rows[1:], "less", cluster_score=-3.0)
    assert below["clusters"][0].mass == pytest.approx(-result["clusters"][0].mass)
    both = judged(rows[0], rows[1:], "two-sided", cluster_score=3.0)
    assert both["clusters"][0].pvalue >= result["clusters"][0].pvalue


def test_undefined_scores_are_no_evidence():
    rows = smooth_noise(np.random.default_rng(0), 20, 6)
    rows[0] += 5.0
    rows[0, 2] = np.nan
    rows[3, 4] = np.nan
    for alternative in SIDES:
        score = -rows if alternative == "less" else rows
        result = judged(score[0], score[1:], alternative)
        assert (
            result["pvalue"][2] == 1.0
            and result["pvalue_max"][2] == 1.0
            and result["pvalue_cluster"][2] == 1.0
        )
        assert result["pvalue"][4] == pytest.approx(2 / 20)
        assert result["pvalue_max"][0] == pytest.approx(
            2 / 20
        )  # that permutation could have been larger anywhere
        assert all(np.isfinite(cluster.mass) for cluster in result["clusters"])


def test_constant_scores_are_not_significant():
    result = judged(np.full(5, 0.5), np.full((30, 5), 0.5), "two-sided")
    assert (
        np.all(result["pvalue"] == 1)
        and np.all(result["pvalue_max"] == 1)
        and result["clusters"] == ()
    )


def test_adjacency_in_every_form():
    matrix = np.zeros((4, 4))
    matrix[0, 2] = matrix[3, 2] = 1  # one direction is enough
    expected = [[0, 2], [2, 3]]
    for form in (
        matrix,
        matrix.astype(bool),
        sp.csr_array(matrix),
        sp.coo_matrix(matrix),
        [[2], [], [], [2]],
        [[0, 2], [1], [0, 3], []],
    ):
        np.testing.assert_array_equal(edges_of(form, (4,)), expected)
    assert len(edges_of(None, (3, 4))) == 2 * 4 + 3 * 3 and len(edges_of(None, (5,))) == 4
    coordinates = np.array(list(itertools.product(range(3), range(4))), dtype=float)
    np.testing.assert_array_equal(
        edges_of(spheres(coordinates, 1.0), (12,)),
        np.unique(np.sort(edges_of(None, (3, 4)), axis=1), axis=0),
    )
    with pytest.raises(ValueError, match="radius"):
        spheres(coordinates, 0.0)
    with pytest.raises(ValueError, match="coordinates"):
        spheres([1.0, 2.0], 1.0)


# ---- under the null hypothesis -------------------------------------------------------------------


def share_below(pvalues: list[float], level: float = 0.05) -> float:
    return float(np.mean(np.array(pvalues) <= level + 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("alternative", SIDES)
def test_the_family_wise_error_is_the_level(alternative):
    """Exchangeable rows with dependent positions.

    Continuous ones reject at exactly the level, rounded ones no more often.
    """
    n_sets, P = 400, 39
    rng = np.random.default_rng(0)
    for decimals in (None, 0):
        smallest: dict[str, list[float]] = {"max": [], "cluster": [], "none": []}
        for _ in range(n_sets):
            rows = smooth_noise(rng, P + 1, 25)
            rows = rows if decimals is None else np.round(rows, decimals)
            result = judged(rows[0], rows[1:], alternative, cluster_pvalue=0.2)
            smallest["max"].append(result["pvalue_max"].min())
            smallest["cluster"].append(result["pvalue_cluster"].min())
            smallest["none"].append(result["pvalue"].min())
        error = 3 * np.sqrt(0.05 * 0.95 / n_sets)
        for name in ("max", "cluster"):
            assert share_below(smallest[name]) <= 0.05 + error
            if decimals is None:
                assert share_below(smallest[name]) >= 0.05 - error
        if decimals is None:
            assert (
                share_below(smallest["none"]) > 0.3
            )  # what looking everywhere without correction does


def noise_epochs(seed: int, n: int = 24, p: int = 3, q: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return smooth_noise(rng, n * p, q).reshape(n, p, q), rng.permutation(np.arange(n) % 2)


@pytest.mark.slow
def test_the_whole_test_keeps_its_level():
    """Simulated epochs without any effect, smooth in time, through the estimator and its folds."""
    n_sets = 100
    smallest: dict[str, list[float]] = {"pvalue_max": [], "pvalue_cluster": [], "pvalue_fdr": []}
    for number in range(n_sets):
        X, y = noise_epochs(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test = permutation_test(
                LINEAR,
                X,
                y,
                cv=StratifiedKFold(3),
                n_permutations=79,
                scoring="roc_auc",
                random_state=number,
            )
        for name, values in smallest.items():
            values.append(getattr(test, name).min())
    error = 3 * np.sqrt(0.05 * 0.95 / n_sets)
    for values in (
        smallest.values()
    ):  # with no effect anywhere the false discovery rate is the family-wise error, too
        assert share_below(values) <= 0.05 + error
    assert share_below(smallest["pvalue_max"], 0.5) == pytest.approx(
        0.5, abs=3 * 0.5 / np.sqrt(n_sets)
    )


def test_an_effect_is_found_where_it_is():
    """A window of 8 of 40 times; times outside it are found no more often than the level allows."""
    hits, false = [], []
    for seed in range(8):
        X, y = noise_epochs(seed, n=60, p=6, q=40)
        X[:, :2, 16:24] += 1.5 * y[:, None, None]
        test = permutation_test(
            LINEAR,
            X,
            y,
            cv=StratifiedKFold(5),
            permute="within-folds",
            n_permutations=199,
            cluster_pvalue=0.01,
            random_state=seed,
        )
        inside = np.zeros(40, dtype=bool)
        inside[16:24] = True
        for name in ("pvalue_max", "pvalue_cluster", "pvalue_fdr"):
            found = getattr(test, name) <= 0.05
            hits.append(found[inside].mean())
        false.append(np.any(test.pvalue_max[~inside] <= 0.05))
        best = test.clusters[0]
        assert best.pvalue <= 0.02 and np.mean(inside[best.positions]) > 0.6
    assert np.mean(hits) > 0.8 and np.sum(false) <= 3


def test_the_same_permutations_by_other_rules():
    X, y = noise_epochs(0, n=40)
    X[:, :, 5:8] += 0.7 * y[:, None, None]
    options: dict[str, Any] = {"cv": KFold(4), "n_permutations": 99}
    test = permutation_test(LINEAR, X, y, **options)
    for rules in (
        {"alternative": "two-sided"},
        {"cluster_pvalue": 0.2},
        {"cluster_score": 0.6},
        {"alternative": "less"},
    ):
        anew = permutation_test(LINEAR, X, y, **options, **rules)
        again = test.corrected(
            **{
                name.replace("cluster_score", "cluster_value"): value
                for name, value in rules.items()
            }
        )
        assert isinstance(again, PositionTest)
        for name in ("pvalue", "pvalue_max", "pvalue_fdr", "pvalue_cluster", "threshold"):
            np.testing.assert_array_equal(getattr(again, name), getattr(anew, name))
    np.testing.assert_array_equal(test.corrected().pvalue_cluster, test.pvalue_cluster)


# ---- groups --------------------------------------------------------------------------------------


def test_flips_are_all_listed_and_are_t_tests():
    rng = np.random.default_rng(0)
    scores = 0.55 + 0.1 * rng.normal(size=(7, 9))
    test = group_test(scores, chance=0.5)
    np.testing.assert_allclose(test.t, scipy.stats.ttest_1samp(scores, 0.5).statistic)
    assert test.exact and len(test.null) == 2**7 - 1
    signs = np.array(list(itertools.product([1, -1], repeat=7)))
    t = np.array(
        [scipy.stats.ttest_1samp(sign[:, None] * (scores - 0.5), 0.0).statistic for sign in signs]
    )
    np.testing.assert_allclose(test.pvalue, np.mean(t >= test.t - 1e-9, axis=0))
    np.testing.assert_allclose(
        test.pvalue_max, np.mean(t.max(axis=1)[:, None] >= test.t - 1e-9, axis=0)
    )
    two = test.corrected(alternative="two-sided")
    np.testing.assert_allclose(two.pvalue, np.mean(np.abs(t) >= np.abs(test.t) - 1e-9, axis=0))
    reference = scipy.stats.permutation_test(
        (scores - 0.5,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="greater",
        vectorized=True,
    )
    np.testing.assert_allclose(test.pvalue, reference.pvalue)
    np.testing.assert_allclose(test.score, scores.mean(axis=0))


def test_clusters_of_a_group_as_in_mne():
    """The same clusters, masses and, to Monte-Carlo error of none (all flips), p-values as MNE's
    one-sample cluster test.
    """
    from optional import require

    stats = require("mne.stats")
    rng = np.random.default_rng(3)
    scores = 0.5 + 0.05 * smooth_noise(rng, 9, 30, 0.6)
    scores[:, 10:16] += 0.05
    for alternative, tail in (("greater", 1), ("less", -1), ("two-sided", 0)):
        values = 1.0 - scores if alternative == "less" else scores
        test = group_test(
            values, chance=0.5, cluster_t=-2.0 if tail == -1 else 2.0, alternative=alternative
        )
        _, clusters, pvalues, _ = stats.permutation_cluster_1samp_test(
            values - 0.5,
            threshold=-2.0 if tail == -1 else 2.0,
            tail=tail,
            n_permutations=2**10,
            seed=0,
            out_type="indices",
            verbose="ERROR",
        )
        theirs = {
            tuple(members[0].tolist()): p for members, p in zip(clusters, pvalues, strict=True)
        }
        ours = {tuple(cluster.positions.tolist()): cluster.pvalue for cluster in test.clusters}
        assert ours.keys() == theirs.keys() and ours
        for members, pvalue in ours.items():
            assert pvalue == pytest.approx(
                theirs[members], abs=1.5 / 2**8
            )  # MNE lists half of the flips in a two-sided test
            assert test.pvalue_cluster[members[0]] == pvalue


def test_draws_for_larger_groups():
    rng = np.random.default_rng(0)
    scores = 0.5 + 0.05 * rng.normal(size=(20, 6))
    scores[:, 2] += 0.05
    test = group_test(scores, chance=0.5, n_permutations=2000, random_state=1)
    assert not test.exact and len(test.null) == 2000
    np.testing.assert_array_equal(
        test.null, group_test(scores, chance=0.5, n_permutations=2000, random_state=1).null
    )
    assert not np.array_equal(
        test.null, group_test(scores, chance=0.5, n_permutations=2000, random_state=2).null
    )
    t = scipy.stats.ttest_1samp(scores, 0.5, alternative="greater").pvalue
    np.testing.assert_allclose(test.pvalue, t, atol=4 * 0.5 / np.sqrt(2000))
    assert test.pvalue_max[2] <= 0.05


def test_groups_of_permutation_tests_and_grids():
    subjects = []
    for seed in range(6):
        X, y = noise_epochs(seed, n=30, q=5)
        X[:, 0, 2] += 2.0 * y
        subjects.append(
            permutation_test(
                LINEAR, X, y, cv=KFold(3, shuffle=True, random_state=0), n_permutations=30
            )
        )
    test = group_test(subjects)
    np.testing.assert_allclose(test.score, np.mean([subject.score for subject in subjects], axis=0))
    np.testing.assert_allclose(
        test.chance, np.mean([subject.chance for subject in subjects], axis=0)
    )
    deviations = np.array([subject.score - subject.chance for subject in subjects])
    np.testing.assert_allclose(test.t, scipy.stats.ttest_1samp(deviations, 0.0).statistic)
    assert test.pvalue[2] == 1 / 64
    grid = group_test(np.random.default_rng(0).normal(size=(6, 4, 4)), chance=0.0)
    assert grid.score.shape == grid.pvalue_max.shape == grid.pvalue_cluster.shape == (4, 4)
    assert "GroupTest" in repr(grid)


def test_equal_scores_of_a_group():
    """Subjects who all deviate alike: t is infinite, and the p-value the smallest there is.

    No deviation at all is none.
    """
    scores = np.full((6, 3), 0.5)
    scores[:, 1] = 0.7
    test = group_test(scores, chance=0.5)
    assert test.t[1] == np.inf and test.pvalue[1] == test.pvalue_max[1] == 1 / 64
    assert test.t[0] == 0 and test.pvalue[0] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("alternative", SIDES)
def test_the_group_test_keeps_its_level(alternative):
    n_sets = 300
    rng = np.random.default_rng(1)
    found = {"pvalue_max": [], "pvalue_cluster": []}
    for _ in range(n_sets):
        scores = smooth_noise(rng, 8, 20)
        test = group_test(scores, chance=0.0, alternative=alternative, cluster_pvalue=0.1)
        for name, values in found.items():
            values.append(getattr(test, name).min())
    for values in found.values():
        share = share_below(values)
        assert abs(share - 12 / 256) <= 0.006 + 3 * np.sqrt(
            0.05 * 0.95 / n_sets
        )  # 12 (two-sided: pairs) of 256 flips are within 5 %


def test_groups_refused_and_doubtful():
    with pytest.raises(ValueError, match="chance must be given"):
        group_test(np.ones((5, 3)))
    with pytest.raises(ValueError, match="at least two subjects"):
        group_test(np.ones((1, 3)), chance=0.5)
    with pytest.raises(ValueError, match="finite"):
        group_test(np.full((5, 3), np.nan), chance=0.5)
    with pytest.raises(ValueError, match="chance must be a number or have one value per position"):
        group_test(np.ones((5, 3)), chance=[0.5, 0.5])
    with pytest.warns(ValidityWarning, match="16 sign patterns"):
        group_test(np.random.default_rng(0).normal(size=(4, 3)), chance=0.0)
    with pytest.warns(ValidityWarning, match=r"smaller than 0.0625"):
        group_test(
            np.random.default_rng(0).normal(size=(5, 3)), chance=0.0, alternative="two-sided"
        )
