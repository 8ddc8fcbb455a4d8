"""Landmarks, Nyström features, sparse expansions and kernel averages.

They give features for a Spectrum.
"""
