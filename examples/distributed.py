"""One model from rows that lie on several machines or GPUs: each process reduces its own rows to
sums, the sums are gathered, and every process has the model of all rows.

Run it: python examples/distributed.py, or with several processes

    torchrun --nproc-per-node 4 examples/distributed.py

Needs torch. With CUDA devices each process works on its own one, otherwise on the host.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fitonce import Accumulation, LeastSquaresSVC
from fitonce.datasets import make_ringnorm

ROWS = 20_000


def own_rows(rank: int, n_processes: int) -> tuple[np.ndarray, np.ndarray]:
    """In earnest: the files of this process."""
    X, y = make_ringnorm(ROWS, random_state=0)
    return X[rank::n_processes], y[rank::n_processes]


def gathered(part: Any, n_processes: int) -> list[Any]:
    """The parts of all processes, everywhere: a few m×m matrices each."""
    if n_processes == 1:
        return [part]
    import torch.distributed as distributed

    parts: list[Any] = [None] * n_processes
    distributed.all_gather_object(parts, part)
    return parts


def main() -> None:
    try:
        import torch
    except ImportError:
        print("this example needs torch: install the build that fits your machine")
        return
    rank, n_processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    cuda = torch.cuda.is_available()
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if cuda else "cpu"
    if n_processes > 1:
        torch.distributed.init_process_group("gloo")

    landmarks, _ = make_ringnorm(200, random_state=1)  # the same for every process
    model = LeastSquaresSVC(gamma=0.05, calibration=None)
    job = Accumulation(model, landmarks, classes=[-1, 1])
    X, y = own_rows(rank, n_processes)
    fold = np.arange(len(X)) % 5  # alpha is chosen by five folds
    part = job.accumulate(torch.asarray(X, device=device), y, fold=fold)
    fitted = job.fit(gathered(part, n_processes))

    if rank == 0:
        X_new, y_new = make_ringnorm(5000, random_state=2)
        print(f"processes: {n_processes}, rows: {ROWS}, worked on: {device.split(':')[0]}")
        print(f"alpha {fitted.alpha_:g}, accuracy on new rows {fitted.score(X_new, y_new):.4f}")
    if n_processes > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
