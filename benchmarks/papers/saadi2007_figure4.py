"""Figure 4 of Saadi, Talbot and Cawley (2007): relative error of the leave-one-out residuals in
canonical form against n literal fits.

e = ‖r̃ - r̂‖²/‖r̃‖² as in figure 2 of Cawley and Talbot (2003), now for the canonical form with a
free bias (their section 3.4) and ±1 targets, so that what remains is the kernel function of the
deleted row (kept by the paper's algebra) and rounding. The paper offers the figure as a check of
numerical stability; it shows the kept function instead. Beside it: rounding alone (canonical form
against literal fits that keep the function), fitonce's exact form, and the LS-SVM twin of section
5.1, whose closed form is exact as printed. The smaller μ, the more the eigenvectors of KᵀK lose
against those of K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shared
from fifteen_lines import ls_svm, orkfd

FULL = {
    "sizes": [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256],
    "trials": 20,
    "gamma": 0.5,
    "mus": [2.0**-10, 1.0],
}
QUICK = {"sizes": [8, 24, 48], "trials": 2, "mus": [1.0]}

LINES = {
    "as published": ("canonical form against n fits", shared.RED, "o"),
    "rounding": ("the same, basis function kept in both", shared.GREY, "x"),
    "ours": ("exact form, fitonce", shared.GREEN, "^"),
    "ls-svm": ("LS-SVM of section 5.1", shared.BLUE, "s"),
}


def direct_ls_svm(K: np.ndarray, y: np.ndarray, mu: float) -> np.ndarray:
    """n literal fits of the bordered system of section 5.1."""
    values = np.empty(len(y))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        ones = np.ones((len(rest), 1))
        system = np.block(
            [[K[np.ix_(rest, rest)] + mu * np.eye(len(rest)), ones], [ones.T, np.zeros((1, 1))]]
        )
        values[i] = np.append(K[i, rest], 1.0) @ np.linalg.solve(system, np.append(y[rest], 0.0))
    return values


def errors(n: int, trial: int, mu: float, gamma: float) -> dict[str, float]:
    K, y = shared.torus(n, trial, gamma)
    dropped = shared.direct_leave_one_out(K, y[:, None], mu)[:, 0]
    kept = shared.direct_leave_one_out_basis_kept(K, y[:, None], mu)[:, 0]
    canonical = orkfd(K, y, [mu])[-1]
    smoother = shared.dual_norm(K)
    targets = smoother.project(y[:, None])
    exact = smoother.leave_one_out(targets, np.array([mu])).residual[0, :, 0]
    return {
        "as published": shared.relative_error(y - dropped, y - canonical),
        "rounding": shared.relative_error(y - kept, y - canonical),
        "ours": shared.relative_error(y - dropped, exact),
        "ls-svm": shared.relative_error(y - direct_ls_svm(K, y, mu), y - ls_svm(K, y, [mu])[-1]),
    }


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Means over the trials: by mu, then by line, one for each size."""
    return {
        f"{mu:g}": {
            line: [
                float(
                    np.mean(
                        [cells[f"{n} {trial} {mu}"][line] for trial in range(settings["trials"])]
                    )
                )
                for n in settings["sizes"]
            ]
            for line in LINES
        }
        for mu in settings["mus"]
    }


def draw(plt: Any, sizes: list[int], mean: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(
        1, len(mean), figsize=(4.8 * len(mean), 4), layout="constrained", sharey=True, squeeze=False
    )
    for panel, (mu, rows) in zip(axes[0], mean.items(), strict=True):
        for line, (label, color, marker) in LINES.items():
            panel.loglog(sizes, rows[line], color=color, marker=marker, markersize=4, label=label)
        panel.set(xlabel="training rows n", title=f"μ = 2^{np.log2(float(mu)):.0f}")
    axes[0, 0].set_ylabel("relative error e, mean over draws")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8
    )
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    sizes, gamma = run.settings["sizes"], run.settings["gamma"]
    keys = [
        (n, trial, mu)
        for n in sizes
        for trial in range(run.settings["trials"])
        for mu in run.settings["mus"]
    ]
    mean = summarise(run.each(keys, lambda n, trial, mu: errors(n, trial, mu, gamma)), run.settings)
    run.save(mean=mean)
    run.figure(draw, sizes, mean)


if __name__ == "__main__":
    main()
