"""Arrays in, arrays out, in the order of the flow: spectrum, smoother, holdout, discriminant, criteria."""
