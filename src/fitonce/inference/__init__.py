"""Permutation tests: thousands of honest refits in one matrix product."""

from .permutation import permutation_test_score
from .result import PermutationTest
from .validity import ValidityWarning

__all__ = ["PermutationTest", "ValidityWarning", "permutation_test_score"]
