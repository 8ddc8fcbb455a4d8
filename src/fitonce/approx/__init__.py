"""Landmarks, Nyström features, sparse expansions and kernel averages: features that end in a Spectrum."""
