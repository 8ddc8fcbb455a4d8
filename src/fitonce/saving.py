"""Models in files: written with skops, read back trusting our own classes only."""
