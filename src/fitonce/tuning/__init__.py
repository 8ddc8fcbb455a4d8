"""Choosing hyper-parameters by closed-form held-out predictions; knows no estimator."""

from .gamma_search import Branch, GammaLattice, alpha_lattice, search
from .refine import NewtonStep, newton
from .trial_runner import TrialRunner
from .trials import Trial, Trials
from .tuner import Tuner

__all__ = [
    "Branch",
    "GammaLattice",
    "NewtonStep",
    "Trial",
    "TrialRunner",
    "Trials",
    "Tuner",
    "alpha_lattice",
    "newton",
    "search",
]
