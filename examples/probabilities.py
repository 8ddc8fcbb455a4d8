"""Are the probabilities right? Reliability of held-out probabilities, and on rows that nobody has
seen.

Calibration is fitted to held-out decisions, so no rows are set aside for it.

    python examples/probabilities.py
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import brier_score_loss

from fitonce import KernelFisherDiscriminant
from fitonce.datasets import make_threenorm
from fitonce.plotting import CalibrationDisplay

X, y = make_threenorm(300, random_state=0)
X_new, y_new = make_threenorm(5000, random_state=1)
print("Brier score of 5000 new rows, and the number of them given a probability of more than 0.95:")
for calibration in (None, "temperature", "sigmoid"):
    model = KernelFisherDiscriminant(calibration=calibration).fit(X, y)
    p = model.predict_proba(X_new)[:, 1]
    sure = np.maximum(p, 1 - p) > 0.95
    print(
        f"calibration={calibration!s:<12} {brier_score_loss(y_new == model.classes_[1], p):.4f}   "
        f"{sure.sum()}"
    )

model = KernelFisherDiscriminant().fit(X, y)
display = CalibrationDisplay.from_estimator(model)
display.ax_.set_title("300 rows, each held out")
plt.show()
