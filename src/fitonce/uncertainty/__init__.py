"""Intervals, sets, variances and influence of a model, from its single decomposition.

This package works with rows, targets and smoothers, not with estimators: `estimators/intervals.py`
calls it.
"""
