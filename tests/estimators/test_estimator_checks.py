"""scikit-learn's own checks, for every estimator."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

import pytest
import sklearn

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from problems import ESTIMATORS, PENALTIES
from sklearn_checks import with_checks

try:
    import sklearn.utils.estimator_checks
except RuntimeError as error:  # scikit-learn 1.6 with SciPy 1.14 and later
    pytest.skip(f"scikit-learn's checks cannot be imported: {error}", allow_module_level=True)

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def plain() -> list:
    """Every estimator with its defaults, on features and on a kernel matrix that is given."""
    return [
        *(E() for E in ESTIMATORS),
        *(E(kernel="precomputed") for E in ESTIMATORS[:2]),
        KernelRidge(kernel="precomputed", penalty="dual"),
    ]


def with_settings() -> list:
    """The other kernels, norms and settings once each, several of them together; what they do to
    the numbers is asked in test_estimators.py, kernel by kernel.
    """
    return [
        KernelFisherDiscriminant("linear"),
        LeastSquaresSVC("linear", penalty="dual"),
        KernelRidge(kernel="linear"),
        KernelFisherDiscriminant("poly", gamma=0.1, calibration=None, alpha=[0.1, 1.0, 10.0]),
        LeastSquaresSVC(
            "laplacian", gamma="scale", calibration=None, fit_intercept="penalized", alpha=1.0
        ),
        KernelRidge(kernel="cosine"),
        # a check sets alpha to 0.01, which must exceed -λ_min
        KernelRidge(kernel="sigmoid", gamma=0.01, coef0=0),
        KernelFisherDiscriminant(
            "precomputed", calibration=None, alpha=100.0
        ),  # truncated to integers it is indefinite
        KernelFisherDiscriminant("sigmoid", gamma=0.1, coef0=-1, penalty="dual", alpha=0.5),
        LeastSquaresSVC(class_weight="balanced", gamma=None, cv=3, alpha=[0.1, 1.0]),
        KernelRidge(
            kernel="poly",
            gamma=0.1,
            coef0=-1,
            fit_intercept=False,
            penalty="dual",
            alpha=[0.1, 1.0],
        ),
    ]


def expected_failures(estimator) -> dict[str, str]:
    if estimator.kernel != "precomputed" or isinstance(estimator, KernelRidge):
        return {}
    return {
        "check_decision_proba_consistency": "feeds a precomputed kernel with data that are not "
        "square"
    }


@with_checks(plain(), expected_failures)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@with_checks(with_settings(), expected_failures)
def test_estimator_check_with_settings(estimator, check):
    check(estimator)


# scikit-learn skips its array-API checks unless SCIPY_ARRAY_API is set before it is imported
ARRAY_API_CHECKS = """
import json
from unittest import SkipTest
from sklearn.utils.estimator_checks import estimator_checks_generator
import fitonce

outcomes = []
for name in ("KernelFisherDiscriminant", "LeastSquaresSVC", "KernelRidge"):
    for penalty in ("function", "dual"):
        model = getattr(fitonce, name)(gamma=0.1, penalty=penalty)
        for estimator, check in estimator_checks_generator(model):
            arguments, function = {}, check
            while hasattr(function, "func"):
                arguments, function = {**arguments, **function.keywords}, function.func
            if "array_api" in function.__name__:
                try:
                    check(estimator)
                    outcome = "passed"
                except SkipTest as reason:
                    outcome = f"skipped: {reason}"
                called = repr(sorted(arguments.items()))
                outcomes.append([name, penalty, function.__name__, called, outcome])
print(json.dumps(outcomes))
"""


@pytest.mark.torch
@pytest.mark.skipif(
    SKLEARN < (1, 9),
    reason="scikit-learn before 1.9 wants classes_ beside the data; ours stay on the host",
)
def test_array_api_checks_run_and_pass():
    pytest.importorskip("array_api_strict")
    environment = {
        **os.environ,
        "SCIPY_ARRAY_API": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-W", "ignore", "-c", ARRAY_API_CHECKS]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    outcomes = json.loads(result.stdout.splitlines()[-1])
    passed = [outcome[:4] for outcome in outcomes if outcome[4] == "passed"]
    for estimator, penalty in itertools.product(ESTIMATORS, PENALTIES):
        for namespace in ("array_api_strict", "torch"):
            ran = [
                arguments
                for *who, _, arguments in passed
                if who == [estimator.__name__, penalty] and f"'{namespace}'" in arguments
            ]
            assert ran, (
                f"no array-API check with {namespace} ran for {estimator.__name__}: {outcomes}"
            )
    unavailable = ("not installed", "cuda", "mps", "xpu")
    skipped = [
        outcome
        for outcome in outcomes
        if outcome[4] != "passed" and not any(word in outcome[4].lower() for word in unavailable)
    ]
    assert not skipped
