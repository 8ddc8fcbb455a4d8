"""From a table to a page that can be mailed: fit, assess, write.

The page needs no network, and its sliders show other settings.

    python examples/report_page.py [wine.html]
"""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline

from fitonce import ClippedScaler, KernelFisherDiscriminant, assess
from fitonce.plotting import ProjectionDisplay
from fitonce.report import Origin, write_report

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
model = make_pipeline(ClippedScaler(), KernelFisherDiscriminant()).fit(X, y)
assessment = assess(model, X, y, permutations=200)
print(
    f"nested accuracy {assessment.score} ({assessment.score.method}), p = "
    f"{assessment.permutation.pvalue:.3f}"
)

with tempfile.TemporaryDirectory() as folder:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "wine.html"
    origin = Origin("wine", "cultivar")  # for the first sentence
    write_report(path, model, X, y, assessment=assessment, title="Wine cultivars", origin=origin)
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB; give a file name to keep it")

ProjectionDisplay.from_estimator(model)
