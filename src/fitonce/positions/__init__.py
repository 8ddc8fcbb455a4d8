"""Decoding at every position of X (n, features, positions): time points, searchlights, wavelengths."""
