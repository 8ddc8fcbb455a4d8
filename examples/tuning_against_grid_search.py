"""One fit against GridSearchCV on the same candidates and the same folds: the same choice, the same
scores.

scikit-learn's search fits every candidate on every training set. The estimator's own tuning
decomposes the kernel matrix once for each width and reads off every alpha and every fold. The
figure shows what an open-ended search tries.

    python examples/tuning_against_grid_search.py
"""

from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from fitonce import LeastSquaresSVC
from fitonce.plotting import CriterionMapDisplay

X, y = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X[::2]), y[::2]
cv = StratifiedKFold(5, shuffle=True, random_state=0)
gammas, alphas = [0.003, 0.01, 0.03, 0.1], np.logspace(-3, 1, 9)

with threadpool_limits(1):
    start = perf_counter()
    search = GridSearchCV(
        LeastSquaresSVC(calibration=None),
        {"gamma": gammas, "alpha": alphas},
        cv=cv,
        scoring="accuracy",
    ).fit(X, y)
    seconds_search = perf_counter() - start

    start = perf_counter()
    models = [
        LeastSquaresSVC(
            gamma=gamma, alpha=alphas, criterion="error", pooled=False, cv=cv, calibration=None
        ).fit(X, y)
        for gamma in gammas
    ]
    seconds_ours = perf_counter() - start

# accuracy is one less the error
ours = np.array([model.cv_results_["mean_test_score"] + 1.0 for model in models])
theirs = search.cv_results_["mean_test_score"].reshape(len(alphas), len(gammas)).T
print(f"{len(X)} rows, {len(gammas)} widths × {len(alphas)} alphas × 5 folds")
print(f"GridSearchCV      {seconds_search:7.2f} s   best accuracy {search.best_score_:.4f}")
print(f"the estimator     {seconds_ours:7.2f} s   best accuracy {ours.max():.4f}")
print(f"largest difference of a mean accuracy: {np.abs(ours - theirs).max():.1e}")
assert np.abs(ours - theirs).max() < 1e-12

# Left to itself it searches gamma and alpha by leave-one-out, refining where it pays.
start = perf_counter()
model = LeastSquaresSVC().fit(X, y)
print(
    f"\nopen-ended search: {len(model.cv_results_['params'])} candidates by leave-one-out in "
    f"{perf_counter() - start:.2f} s: "
    f"gamma = {model.gamma_:.3g}, alpha = {model.alpha_:.3g}"
)
CriterionMapDisplay.from_estimator(model)
