"""One offline HTML page that explains a fitted model and lets its reader try others. Needs the
extra ``fitonce[report]``.

The page renders what the library has computed (`fitonce.assess`, the fitted model). Its explorer
carries the decomposition of the training rows and recomputes exact leave-one-out results in the
browser; see `fitonce.report.explorer`.
"""

from .page import write_report

__all__ = ["write_report"]
