"""What a page or a terminal shows about a model: honest scores, intervals, baselines, the permutation test, the choices."""
