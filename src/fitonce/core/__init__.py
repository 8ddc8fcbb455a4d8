"""Arrays in, arrays out, in the order of the flow.

Spectrum, smoother, holdout, discriminant, criteria.
"""
