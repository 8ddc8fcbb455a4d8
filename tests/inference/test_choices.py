"""What tuning chooses for many labelings at once is what a fit chooses for each of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, permutation_test_score
from fitonce.estimators.setup import folds_of, setup_of
from fitonce.inference import choices
from fitonce.inference.per_fold_maps import TrainedFold

MODELS = [
    KernelFisherDiscriminant("tune"),
    KernelFisherDiscriminant("tune", search="coarse"),
    KernelFisherDiscriminant(gamma=0.3, criterion="log_loss", priors="given"),
    KernelFisherDiscriminant(gamma=0.3, cv=KFold(4), criterion="squared_error+log_loss"),
    KernelFisherDiscriminant("linear", fit_intercept=False, criterion="squared_error"),
    KernelFisherDiscriminant("linear", alpha=[0.1, 1.0, 100.0], criterion="error"),
    LeastSquaresSVC(penalty="tune", criterion="brier", gamma=0.2),
    LeastSquaresSVC("linear", fit_intercept=False, criterion="squared_error+log_loss"),
    LeastSquaresSVC(["rbf", "linear"], cv=KFold(5), criterion="squared_error"),
    KernelRidge(kernel="tune", criterion="r2"),
    KernelRidge(cv=KFold(4), search="coarse"),
    KernelRidge(kernel="linear", criterion="correlation", cv=KFold(3)),
]


def labelled(model, n_classes, n=36):
    """Rows of which the classes differ a little, and five labelings of unequal class sizes."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, 3))
    if model.multi_output:
        return X, X[:, :1].T + rng.normal(size=(5, n))
    codes = rng.integers(n_classes, size=(5, n))
    codes[:, :n_classes] = np.arange(n_classes)
    X[:, 0] += codes[0]
    return X, codes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_labeling_gets_the_choice_of_a_fit(model, n_classes, weighted):
    model = clone(model)
    if getattr(model, "priors", None) is not None:
        model.set_params(priors=np.arange(1.0, 1 + n_classes) / np.arange(1, 1 + n_classes).sum())
    X, labels = labelled(model, n_classes)
    w = np.random.default_rng(0).uniform(0.3, 3.0, len(X)) if weighted else None
    setup = setup_of(clone(model), X, labels[0], w)
    inner = folds_of(model.cv, setup.training, classifier=not model.multi_output)
    fold = TrainedFold(setup, X, 1 << 28, inner=inner)
    values = labels[:, None, :] if model.multi_output else labels
    chosen = fold.choices(values, values if model.multi_output else None)
    for y, (parameters, alpha) in zip(labels, chosen, strict=True):
        fitted = clone(model).fit(X, y, sample_weight=w)
        assert fitted.alpha_ == alpha
        found = {name: getattr(fitted, f"{name}_") for name, _ in parameters}
        assert found == dict(parameters)


def test_a_coarse_search_tries_every_fourth_power_of_two():
    """Of alpha, and of gamma inside the edges of the window; nothing beyond or between."""
    model = KernelFisherDiscriminant("tune", search="coarse")
    X, labels = labelled(model, 2)
    tried = model.fit(X, labels[0]).cv_results_["params"]
    alphas = np.unique([np.log2(given["alpha"]) for given in tried])
    assert np.all(alphas % 4 == 0) and np.all(np.diff(alphas) == 4) and 8 <= len(alphas) <= 12
    for kernel, count in {"rbf": 3, "laplacian": 3, "exponential": 2}.items():
        gammas = {np.log2(given["gamma"]) for given in tried if given["kernel"] == kernel}
        assert len(gammas) == count and set(np.diff(sorted(gammas))) == {4.0}


@pytest.mark.parametrize("elements", [1, 700])
def test_blocks_of_labelings_and_alphas_change_nothing(elements, monkeypatch):
    model = KernelFisherDiscriminant(gamma=0.3)
    X, labels = labelled(model, 2)
    given = setup_of(model, X, labels[0]), X, 1 << 28
    together = TrainedFold(*given).choices(labels, None)
    monkeypatch.setattr(choices, "ELEMENTS", elements)
    assert TrainedFold(*given).choices(labels, None) == together


def test_rounding_ties_of_a_constant_model_are_those_of_a_fit():
    """Noise chooses huge alphas, whose decisions are all but equal: zero where a fit's are zero."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    model, cv = LeastSquaresSVC(gamma=200.0, alpha=[1e3, 4e3]), KFold(3)
    test = permutation_test_score(model, X, y, cv=cv, n_permutations=20, permute="free")
    random, fits = np.random.RandomState(0), []
    for _ in range(20):
        moved = y[random.permutation(30)]
        scores = [clone(model).fit(X[a], moved[a]).score(X[b], moved[b]) for a, b in cv.split(X)]
        fits.append(np.mean(scores))
    np.testing.assert_allclose(test.permutation_scores, fits)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_noise_is_rejected_as_often_as_the_level_says_with_the_choice_inside(task):
    """300 tables of noise: kernel, gamma and alpha chosen for every labeling."""
    rejected = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(24, 2)), rng.permutation(np.arange(24) % 2)
        model = KernelFisherDiscriminant("tune", search="coarse")
        if task == "numbers":
            model, y = KernelRidge(kernel="tune", search="coarse"), rng.normal(size=24)
        test = permutation_test_score(model, X, y, cv=3, n_permutations=19, random_state=seed)
        rejected += test.pvalue <= 0.05
    assert rejected <= 26  # binomial(300, 0.05): 27 or more has probability 0.3 %
