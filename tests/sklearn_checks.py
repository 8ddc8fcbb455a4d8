"""scikit-learn's own checks as parametrized tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest


def with_checks(
    instances: Sequence[Any], expected_failures: Callable[[Any], dict[str, str]] | None = None
) -> pytest.MarkDecorator:
    """A decorator that calls a test with (estimator, check) for every check of every instance.

    The array-API checks are left out: scikit-learn skips them unless SCIPY_ARRAY_API is set before
    it is imported, so test_estimator_checks.py runs them in a process of their own.
    """
    from sklearn.utils.estimator_checks import parametrize_with_checks

    marked = parametrize_with_checks(instances, expected_failed_checks=expected_failures)
    cases = [case for case in marked.args[1] if "array_api" not in name_of(case)]
    # each instance is written out once, not for every check
    return pytest.mark.parametrize(marked.args[0], cases, ids=cache(marked.kwargs["ids"]))


def name_of(case: Any) -> str:
    """The name of the check in (estimator, check), which may be a pytest.param."""
    _, check = getattr(case, "values", case)
    while hasattr(check, "func"):
        check = check.func
    return str(check.__name__)
