"""Landmarks, Nyström features, sparse expansions and kernel averages.

Features that end in a Spectrum.
"""
