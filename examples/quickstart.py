"""Fit once on a small data set, cross-validate for free, and check the result against literal
refits.

Run it with ``python examples/quickstart.py``; it needs no download and takes a few seconds.
"""

from time import perf_counter

import numpy as np
import sklearn.model_selection
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import fitonce

X, y = load_breast_cancer(return_X_y=True)
X_scaled = fitonce.ClippedScaler().fit_transform(X)
print(f"breast cancer: {X.shape[0]} rows, {X.shape[1]} features, 2 classes")

# One fit chooses kernel width and alpha among many candidates and has every row's leave-one-out
# decision. The scaler has seen all rows.
start = perf_counter()
model = fitonce.KernelFisherDiscriminant().fit(X_scaled, y)
seconds = perf_counter() - start
accuracy = np.mean((model.held_out_decision_ > 0) == y)
n_candidates = len(model.cv_results_["param_alpha"])
print(f"\none fit, {n_candidates} candidates of (gamma, alpha), {seconds:.3f} s:")
print(
    f"gamma = {model.gamma_:.3g}, alpha = {model.alpha_:.3g}, leave-one-out accuracy {accuracy:.3f}"
)

# In a pipeline, scaling and tuning are repeated on each training set (route "per-fold").
pipeline = make_pipeline(fitonce.ClippedScaler(), fitonce.KernelFisherDiscriminant())
scores = fitonce.cross_val_score(pipeline, X, y, cv=10)
print(
    f"\n10-fold accuracy of the pipeline: {scores.mean():.3f} (standard deviation "
    f"{scores.std():.3f} over the folds)"
)

# With fixed parameters one decomposition serves all splits (route "one"); scikit-learn's function
# refits the same estimator.
# Both run on one BLAS thread: matrices this small lose time to more, and a refit loses most.
fixed = fitonce.KernelFisherDiscriminant(gamma=model.gamma_, alpha=model.alpha_)
print("\ncross_val_score at fixed parameters, seconds on one thread:")
print(f"{'splits':<14}{'refits':>8}{'fitonce':>10}{'scikit-learn':>14}   same scores")
for name, cv in (
    ("10-fold", 10),
    ("10 × 10-fold", RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)),
):
    with threadpool_limits(1):
        start = perf_counter()
        ours = fitonce.cross_val_score(fixed, X_scaled, y, cv=cv)
        between = perf_counter()
        theirs = sklearn.model_selection.cross_val_score(fixed, X_scaled, y, cv=cv)
        end = perf_counter()
    print(
        f"{name:<14}{len(ours):>8}{between - start:>10.3f}{end - between:>14.3f}   "
        f"{np.array_equal(ours, theirs)}"
    )

# A thousand relabellings go through that one decomposition as the columns of one matrix product.
start = perf_counter()
score, _, pvalue = test = fitonce.permutation_test_score(
    fixed, X_scaled, y, cv=10, n_permutations=1000
)
seconds = perf_counter() - start
print(
    f"\n1000 permutations, 10-fold: accuracy {score:.3f}, p = {pvalue:.4f}, {seconds:.2f} s "
    f"(folds split anew for each: {test.mode})"
)

print(f"\nverify: {model.verify()}")
