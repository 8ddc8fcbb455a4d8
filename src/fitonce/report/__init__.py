"""A self-contained HTML page that explains a fitted model and lets the reader try other settings.
Needs the extra ``fitonce[report]``.

The page shows results computed by the library (`fitonce.assess`, the fitted model). Its explorer
contains the held-out results for every position of its sliders; see `fitonce.report.explorer`.
"""

from .page import write_report
from .subject import Origin

__all__ = ["Origin", "write_report"]
