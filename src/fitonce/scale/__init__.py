"""Rows in blocks, from memory, files or a cluster, reduced to moments that end in a Spectrum."""
