"""Leave-one-out over 21 alphas on landmark features of many rows: fitonce against Nystroem +
RidgeClassifierCV.

Each contender runs in a process of its own, which makes the data, notes its memory, fits and
predicts; reported are seconds, the peak of memory above that note, and the accuracy on unseen rows.
The growth of our time with n comes last. Resumable: finished runs are kept in the result file. The
peer needs about 16 GiB at a million rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import common
import numpy as np

SIZES = [(250_000, 300), (1_000_000, 500)]
GROWTH = [62_500, 125_000, 250_000, 500_000, 1_000_000]
ALPHAS = np.logspace(-3, 4, 21)
N_FEATURES, GAMMA, N_TEST = 20, 0.02, 50_000


def data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two classes apart by the sign of a smooth function of six of twenty features, with noise.

    Best accuracy about .92.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + N_TEST, N_FEATURES))
    signal = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 - 1 + X[:, 4] * X[:, 5]
    y = (signal + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # GiB on Linux


def contender(name: str, m: int):
    if name == "fitonce":
        from fitonce import LeastSquaresSVC

        return LeastSquaresSVC(
            gamma=GAMMA,
            alpha=ALPHAS,
            landmarks=m,
            random_state=0,
            criterion="squared_error",
            calibration=None,
        )
    if name == "fitonce_default_criterion":
        from fitonce import LeastSquaresSVC

        return LeastSquaresSVC(gamma=GAMMA, alpha=ALPHAS, landmarks=m, random_state=0)
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        Nystroem(gamma=GAMMA, n_components=m, random_state=0), RidgeClassifierCV(alphas=ALPHAS)
    )


def run(name: str, n: int, m: int) -> dict[str, float]:
    X, y, X_test, y_test = data(n)
    model = contender(name, m)
    model.__class__.fit  # noqa: B018 - imports happen before the clock
    from sklearn.metrics.pairwise import rbf_kernel

    rbf_kernel(X[:10], X[:10])
    before = peak()
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    extra = peak() - before
    return {
        "seconds": seconds,
        "extra_gib": extra,
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
    }


def measure(results: dict, name: str, n: int, m: int) -> dict[str, float]:
    """One run in a fresh process, unless the result is there already."""
    key = f"{name} n={n} m={m}"
    if key not in results["runs"]:
        command = [sys.executable, __file__, "--run", name, "--n", str(n), "--m", str(m)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        results["runs"][key] = json.loads(output.splitlines()[-1])
        common.write(__file__, results)
        print(key, results["runs"][key], flush=True)
    return results["runs"][key]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run")
    parser.add_argument("--n", type=int)
    parser.add_argument("--m", type=int)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, nothing written")
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(run(arguments.run, arguments.n, arguments.m)))
        return
    path = common.RESULTS / "large.json"
    results = {"runs": {}}
    if path.exists() and not arguments.quick:
        results["runs"] = json.loads(path.read_text()).get("runs", {})
    scale = 10 if arguments.quick else 1
    if arguments.quick:
        common.write = lambda *_: path
    for n, m in SIZES:
        ours, peer = (
            measure(results, "fitonce", n // scale, m),
            measure(results, "sklearn", n // scale, m),
        )
        measure(results, "fitonce_default_criterion", n // scale, m)
        results[f"n={n} m={m}"] = {
            "times_faster": peer["seconds"] / ours["seconds"],
            "share_of_memory": ours["extra_gib"] / peer["extra_gib"],
            "accuracy_difference": ours["accuracy"] - peer["accuracy"],
        }
    times = [measure(results, "fitonce", n // scale, 300)["seconds"] for n in GROWTH]
    slope = float(np.polyfit(np.log(GROWTH), np.log(times), 1)[0])
    results["growth"] = {"n": GROWTH, "seconds": times, "slope": slope}
    common.write(__file__, results)
    for n, m in SIZES:
        print(
            f"n = {n:,}, m = {m}:",
            {name: round(value, 3) for name, value in results[f"n={n} m={m}"].items()},
        )
    print(f"slope of log time in log n: {slope:.2f}")


if __name__ == "__main__":
    main()
