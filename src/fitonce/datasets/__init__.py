"""Simulated data with known best classifiers, and loaders that never download on import."""

from .generators import (
    BAYES_ERROR,
    checkerboard_bayes,
    make_checkerboard,
    make_ringnorm,
    make_threenorm,
    make_torus,
    make_twonorm,
    make_waveform,
    make_waveform3,
    ringnorm_bayes,
    threenorm_bayes,
    torus_bayes,
    twonorm_bayes,
    waveform3_bayes,
    waveform_bayes,
)
from .raetsch import RAETSCH, fetch_raetsch, raetsch_splits

__all__ = [
    "BAYES_ERROR",
    "RAETSCH",
    "checkerboard_bayes",
    "fetch_raetsch",
    "make_checkerboard",
    "make_ringnorm",
    "make_threenorm",
    "make_torus",
    "make_twonorm",
    "make_waveform",
    "make_waveform3",
    "raetsch_splits",
    "ringnorm_bayes",
    "threenorm_bayes",
    "torus_bayes",
    "twonorm_bayes",
    "waveform3_bayes",
    "waveform_bayes",
]
