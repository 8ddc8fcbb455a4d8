"""Figure 2 of Cawley and Talbot (2003): relative error of the analytic leave-one-out residuals,
split into its causes.

e = ‖r̃ - r̂‖²/‖r̃‖², where r̃ are the residuals sign(y) - f of n literal fits of equation (4): the
row, its kernel function and its part in the targets n/n₁, -n/n₂ all leave. The paper's r̂ =
(sign(y) - f)/(1 - h) differs from that in four ways, each measured alone:

- slip: the identity r/(1 - h) holds for residuals of the targets that were trained on, and the
  paper puts sign(y) in their place;
- basis kept: the kernel function centred on the deleted row stays in the expansion;
- targets kept: n/n₁ and -n/n₂ stay those of all rows;
- rounding: the analytic formula against literal fits of exactly the model it stands for.

"ours" is the exact closed form of fitonce against the literal fits, "rounding" its natural level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import shared

FULL = {
    "sizes": [10, 14, 20, 30, 45, 70, 100, 150, 220, 330, 500],
    "trials": 20,
    "gamma": 0.5,
    "mus": [0.01, 1.0],
}
QUICK = {"sizes": [10, 30, 60], "trials": 2, "mus": [1.0]}

CAUSES = {
    "as printed": ("as printed: everything together", shared.RED, "o"),
    "slip": ("sign(y) in place of the trained targets", shared.ORANGE, "v"),
    "basis kept": ("basis function kept", shared.BLUE, "s"),
    "targets kept": ("targets n/n₁, -n/n₂ kept", shared.PURPLE, "D"),
    "rounding": ("rounding of the formula", shared.GREY, "x"),
    "ours": ("exact form, fitonce", shared.GREEN, "^"),
}


def held_out_scores(y: np.ndarray) -> np.ndarray:
    """(n, 2): in row i the targets n/n₁ and -n/n₂ of the training set without row i."""
    counts = indicator_sums(y) - shared.indicators(y)
    return (len(y) - 1) / counts * np.array([1.0, -1.0])


def indicator_sums(y: np.ndarray) -> np.ndarray:
    return shared.indicators(y).sum(axis=0)


def causes(n: int, trial: int, mu: float, gamma: float) -> dict[str, float]:
    """e of each cause on one draw.

    All models here are linear in the targets, so held-out class indicators P (n, 2) give the
    held-out value for any targets (t₁, t₂) of the two classes: f = P₁t₁ + P₂t₂.
    """
    K, y = shared.torus(n, trial, gamma)
    Y, all_rows, without_row = shared.indicators(y), shared.fisher_scores(y), held_out_scores(y)

    def residual(P: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return y - np.sum(P * scores, axis=1)

    dropped = shared.direct_leave_one_out(K, Y, mu)
    kept = shared.direct_leave_one_out_basis_kept(K, Y, mu)
    smoother = shared.dual_norm(K)
    exact = Y - smoother.leave_one_out(smoother.project(Y), np.array([mu])).residual[0]
    Z = shared.with_ones(K)
    C_inverse = scipy.linalg.inv(shared.bordered_normal_equations(Z, mu))
    one_minus_h = 1.0 - np.einsum("ij,ij->i", Z @ C_inverse, Z)
    fitted = Z @ (C_inverse @ (Z.T @ Y))
    analytic = Y - (Y - fitted) / one_minus_h[:, None]
    printed = residual(fitted, all_rows) / one_minus_h

    direct = residual(dropped, without_row)
    return {
        "as printed": shared.relative_error(direct, printed),
        "slip": shared.relative_error(residual(kept, all_rows), printed),
        "basis kept": shared.relative_error(direct, residual(kept, without_row)),
        "targets kept": shared.relative_error(direct, residual(dropped, all_rows)),
        "rounding": shared.relative_error(residual(kept, all_rows), residual(analytic, all_rows)),
        "ours": shared.relative_error(direct, residual(exact, without_row)),
        "error rate, direct": float(np.mean(y * (y - direct) <= 0)),
        "error rate, as printed": float(np.mean(y * (y - printed) <= 0)),
        "error rate, ours": float(np.mean(y * np.sum(exact * without_row, axis=1) <= 0)),
    }


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Means over the trials: by mu, then by quantity, one for each size."""
    return {
        f"{mu:g}": {
            what: [
                float(
                    np.mean(
                        [cells[f"{n} {trial} {mu}"][what] for trial in range(settings["trials"])]
                    )
                )
                for n in settings["sizes"]
            ]
            for what in next(iter(cells.values()))
        }
        for mu in settings["mus"]
    }


def draw(plt: Any, sizes: list[int], mean: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(
        1, len(mean) + 1, figsize=(4.4 * (len(mean) + 1), 4.4), layout="constrained", squeeze=False
    )
    decay, lines = axes[0, -1], ("-", "--", ":")
    for panel, (mu, rows), line in zip(axes[0, :-1], mean.items(), lines, strict=False):
        panel.sharey(axes[0, 0])
        for cause, (label, color, marker) in CAUSES.items():
            width = 3.5 if cause == "as printed" else 1.4  # the next one lies on top of it
            panel.loglog(
                sizes,
                rows[cause],
                color=color,
                marker=marker,
                markersize=4,
                linewidth=width,
                label=label,
            )
        panel.set(xlabel="training rows n", title=f"μ = {mu}")
        style = {"color": shared.BLUE, "marker": "s", "markersize": 4, "linestyle": line}
        decay.plot(sizes, rows["basis kept"], label=f"basis function kept, μ = {mu}", **style)
    decay.axvline(30, color=shared.GREY, linewidth=0.8)
    decay.text(38, 0.93, "30 rows", color=shared.GREY, transform=decay.get_xaxis_transform())
    decay.set(xlabel="training rows n", title="the paper's decay, linear axes", ylim=(0, None))
    decay.legend(fontsize=8)
    axes[0, 0].set_ylabel("relative error e, mean over draws")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
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
    mean = summarise(run.each(keys, lambda n, trial, mu: causes(n, trial, mu, gamma)), run.settings)
    run.save(mean=mean)
    run.figure(draw, sizes, mean)


if __name__ == "__main__":
    main()
