"""Choosing hyper-parameters by closed-form held-out predictions; knows no estimator."""

from .lattice import GammaLattice, alpha_lattice
from .newton import NewtonStep, newton
from .search import Branch, Search, Trial
from .tuner import Tuned, Tuner
from .walk import search

__all__ = [
    "Branch",
    "GammaLattice",
    "NewtonStep",
    "Search",
    "Trial",
    "Tuned",
    "Tuner",
    "alpha_lattice",
    "newton",
    "search",
]
