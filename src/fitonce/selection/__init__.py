"""Choosing hyper-parameters by closed-form held-out predictions."""

from .regularisation import Choice, choose_alpha, default_candidates

__all__ = ["Choice", "choose_alpha", "default_candidates"]
