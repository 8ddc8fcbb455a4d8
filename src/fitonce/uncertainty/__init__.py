"""Intervals, sets, variances and influence of a model, from its one decomposition.

Knows rows, targets and smoothers, no estimator: `estimators/uncertain.py` calls it.
"""
