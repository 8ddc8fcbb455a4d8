"""Confounds in cross-validation: split like X, and passed to `fit` and to `predict`.

scikit-learn's functions pass parameters only to `fit`. A model with confounds also needs them for
its predictions, so here they are kept with the rows (`FoldContext`), not with the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sklearn
from sklearn.pipeline import Pipeline

from ..estimators.fitted import final_step, is_committee, is_model


def taken(estimator: Any, params: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any] | None]:
    """The confounds among the parameters of a fit, and the other parameters.

    They are named "confounds" or, for the last step of a pipeline, as scikit-learn names it.
    """
    if params is None:
        return None, None
    names = [name for name in ("confounds", f"{_step(estimator)}confounds") if name in params]
    rest = {name: value for name, value in params.items() if name not in names}
    confounds = next((params[name] for name in names if params[name] is not None), None)
    last = final_step(estimator)
    if confounds is not None and not (is_model(last) or is_committee(last)):
        raise TypeError(
            "confounds need an estimator of fitonce, or a pipeline that ends in one, got "
            f"{type(estimator).__name__} instead: others do not accept them in predict."
        )
    return confounds, rest


def fit_parameters(estimator: Any, confounds: Any) -> dict[str, Any]:
    """The confounds in the form that `fit` of the estimator takes."""
    if confounds is None:
        return {}
    routed = sklearn.get_config()["enable_metadata_routing"]
    return {"confounds" if routed else f"{_step(estimator)}confounds": confounds}


def _step(estimator: Any) -> str:
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def call(fitted: Any, method: str, X: Any, confounds: Any) -> Any:
    """Call a method of a fitted estimator on rows with confounds."""
    if confounds is None:
        return getattr(fitted, method)(X)
    model = final_step(fitted)
    X = X if model is fitted else fitted[:-1].transform(X)
    return getattr(model, method)(X, confounds=confounds)


__all__ = ["call", "fit_parameters", "taken"]
