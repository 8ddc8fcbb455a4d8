"""Choosing hyper-parameters by closed-form held-out predictions."""

from .gradient import KernelObjective
from .lattice import GammaLattice, alpha_lattice
from .newton import NewtonStep, newton
from .search import Search, Trial, search

__all__ = [
    "GammaLattice",
    "KernelObjective",
    "NewtonStep",
    "Search",
    "Trial",
    "alpha_lattice",
    "newton",
    "search",
]
