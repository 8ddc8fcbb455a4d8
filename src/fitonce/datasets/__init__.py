"""Data with known answers, and loaders that never download on import."""

from .generators import (
    BAYES_ERROR,
    make_ringnorm,
    make_torus,
    make_twonorm,
    make_waveform,
    ringnorm_bayes,
    torus_bayes,
    twonorm_bayes,
    waveform_bayes,
)
from .raetsch import RAETSCH, fetch_raetsch, raetsch_splits

__all__ = [
    "BAYES_ERROR",
    "RAETSCH",
    "fetch_raetsch",
    "make_ringnorm",
    "make_torus",
    "make_twonorm",
    "make_waveform",
    "raetsch_splits",
    "ringnorm_bayes",
    "torus_bayes",
    "twonorm_bayes",
    "waveform_bayes",
]
