"""The same model on the host and, where there is one, on a GPU: where the arrays live is where the
work happens.

Run it: python examples/gpu.py. Needs torch; without a CUDA device it runs on torch's CPU tensors.
"""

from __future__ import annotations

import time

import numpy as np

from fitonce import KernelFisherDiscriminant
from fitonce.datasets import make_ringnorm


def main() -> None:
    try:
        import torch
    except ImportError:
        print("this example needs torch: install the build that fits your machine")
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n = 8000 if device == "cuda" else 800
    X, y = make_ringnorm(n, random_state=0)
    settings = {"gamma": 0.03, "alpha": np.logspace(-3, 2, 21)}

    start = time.perf_counter()
    host = KernelFisherDiscriminant(**settings).fit(X, y)
    on_host = time.perf_counter() - start

    rows = torch.asarray(X, device=device)
    KernelFisherDiscriminant(**settings).fit(rows[:256], y[:256])  # libraries load
    start = time.perf_counter()
    model = KernelFisherDiscriminant(**settings).fit(rows, y)
    on_device = time.perf_counter() - start

    difference = np.abs(model.held_out_decision_.cpu().numpy() - host.held_out_decision_).max()
    print(
        f"{n:,} rows, 21 alphas by leave-one-out: NumPy {on_host:.2f} s, torch on {device} "
        f"{on_device:.2f} s"
    )
    print(
        f"same alpha: {model.alpha_ == host.alpha_}; held-out decisions differ by at most "
        f"{difference:.1e}"
    )
    print(
        "leave-one-out accuracy "
        f"{float(np.mean((host.held_out_decision_ > 0) == (y == host.classes_[1]))):.4f}"
    )


if __name__ == "__main__":
    main()
