"""Permutation tests: thousands of exact refits in one matrix product."""

from .exchange import ValidityWarning
from .permutation import permutation_test_score
from .result import PermutationTest

__all__ = ["PermutationTest", "ValidityWarning", "permutation_test_score"]
