"""Decoding at many positions: time points, searchlights, wavelengths.

X is (n_samples, n_features, n_positions).
"""

from .corrections import Cluster
from .group import group_test
from .permutation import permutation_test
from .prevalence import PrevalenceTest, prevalence_test
from .result import GroupTest, PositionTest
from .scores import cross_val_score, generalize
from .slices import spheres

__all__ = [
    "Cluster",
    "GroupTest",
    "PositionTest",
    "PrevalenceTest",
    "cross_val_score",
    "generalize",
    "group_test",
    "permutation_test",
    "prevalence_test",
    "spheres",
]
