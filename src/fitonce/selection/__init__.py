"""Choosing hyper-parameters by closed-form held-out predictions."""

from .lattice import GammaLattice, alpha_lattice
from .search import Search, Trial, search

__all__ = ["GammaLattice", "Search", "Trial", "alpha_lattice", "search"]
