"""One offline HTML page that explains a fitted model and lets its reader try others. Needs the
extra ``fitonce[report]``.

The page renders what the library has computed (`fitonce.assess`, the fitted model). Its explorer
carries held-out results of the model at every stop of its sliders; see `fitonce.report.explorer`.
"""

from .page import write_report
from .subject import Origin

__all__ = ["Origin", "write_report"]
