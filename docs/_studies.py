"""Tables from the studies of benchmarks/models.py and the simulations of simulations.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.stats
from _marked import table, wrapped

Result = Callable[[str], dict[str, Any]]
MadeBy = Callable[..., str]
Row = dict[str, Any]


def half(found: Row, name: str, measure: str) -> dict[str, Row]:
    """The models of one half with their ranks and means."""
    models: dict[str, Row] = found["summary"][name][measure]["models"]
    return models


def ranked(models: dict[str, Row]) -> list[str]:
    return sorted(models, key=lambda model: float(models[model]["rank"]))


def wins(found: Row, one: Row) -> str:
    """The share of sets on which a model is better than each peer."""
    shares = {p: v for p, v in one["better than"].items() if found["models"][p] == "peer"}
    return ", ".join(f"{peer} {share:.0%}" for peer, share in shares.items())


def means(found: Row, measure: str, name: str | None = None) -> np.ndarray:
    """(sets, models), of one half or of all sets."""
    sets = found["sets"][measure]
    names = [s for s in (found["halves"][name] if name else sets) if s in sets]
    return np.array([sets[s] for s in names])[:, :, 0]


def apart(values: np.ndarray) -> str:
    """A mean difference over the sets with its standard error."""
    return f"{values.mean():+.4f} ± {values.std() / np.sqrt(len(values)):.4f}"


def study_tables(result: Result, made_by: MadeBy) -> Any:
    """What _figures.py writes of the studies, by name."""

    def ranks(name: str) -> str:
        found = result("forty")
        by = {what: half(found, name, what) for what in found["summary"][name]}
        rows = [
            [
                f"**{model}**" if found["models"][model] == "ours" else model,
                *(f"{by[what][model]['rank']:.1f}" for what in ("error", "log_loss")),
                f"{by['error'][model]['mean']:.1f}",
                f"{by['log_loss'][model]['mean']:.3f}",
                f"{by['calibration'][model]['mean']:.3f}",
            ]
            for model in ranked(by["log_loss"])
        ]
        n, k = found["summary"][name]["error"]["number of sets"], len(rows)
        header = [f"{n} {name} sets", "rank, error", "rank, log-loss", "mean error %"]
        header += ["mean log-loss", "calibration error"]
        critical = scipy.stats.studentized_range.ppf(0.95, k, 1e6) * np.sqrt(k * (k + 1) / 12 / n)
        p = [
            scipy.stats.friedmanchisquare(*means(found, what, name).T).pvalue
            for what in ("error", "log_loss")
        ]
        note = wrapped(
            "Bold: this package. Ranks differ significantly (Nemenyi, 5 %) where they are more "
            f"than {critical:.1f} apart; Friedman's test of equal ranks has p = {p[0]:.1g} for "
            f"errors, {p[1]:.1g} for log-losses."
            + (f" Peers as measured at {found['kept']['commit']}." if "kept" in found else "")
        )
        return made_by(table(header, rows) + "\n" + note, "forty")

    def accuracy_wins() -> str:
        found, rows = result("forty"), []
        for model in (m for m, whose in found["models"].items() if whose == "ours"):
            for what, words in (("error", "error"), ("log_loss", "log-loss")):
                one = half(found, "reporting", what)[model]
                rows.append([model, words, wins(found, one)])
        return made_by(table(["", "better in", "than, share of the sets"], rows), "forty")

    def by_set(measure: str, digits: int) -> str:
        found, rows = result("forty"), []
        for name in found["halves"]["reporting"]:
            n, p, c, _ = found["shape"][name]
            values = found["sets"][measure][name]
            cells = [f"{mean:.{digits}f} ± {error:.{digits}f}" for mean, error in values]
            best = min(range(len(values)), key=lambda k: float(values[k][0]))
            cells[best] = f"**{cells[best]}**"
            rows.append([name, f"{n} × {p}, {c}", *cells])
        header = ["set", "rows × columns, classes", *found["models"]]
        return made_by(table(header, rows), "forty")

    def public_classes() -> str:
        """Both halves, since there are few tables with classes."""
        found, rows = result("tables"), []
        for name in found["summary"]:
            loss, error = half(found, name, "log_loss"), half(found, name, "error")
            for model in ranked(loss):
                a, b = loss[model], error[model]
                cells = [f"{a['rank']:.1f}", f"{a['mean']:.3f}", f"{b['rank']:.1f}"]
                rows.append([name, model, *cells, f"{b['mean']:.1f}", wins(found, a)])
        header = ["half", "model", "rank, log-loss", "log-loss", "rank, error", "error %"]
        better = "better than the peers in log-loss, share of tables"
        return made_by(table([*header, better], rows), "tables")

    def public_numbers() -> str:
        found = result("tables")
        models, far = half(found, "reporting", "r2"), half(found, "reporting", "far")
        rows = []
        for model in ranked(models):
            one = models[model]
            most = max(one["most behind the best peer"], 0.0)
            cells = [f"{one['rank']:.1f}", f"{one['mean']:.3f}", f"{one['worst']:.3f}"]
            cells += [f"{most:.2f}", f"{far[model]['largest']:.2g}"]
            rows.append([model, *cells, wins(found, one)])
        n = found["summary"]["reporting"]["r2"]["number of sets"]
        header = [f"{n} tables", "rank", "mean R²", "worst R²", "most behind the best peer"]
        header += ["a far row, ranges off", "better than the peers, share of tables"]
        return made_by(table(header, rows), "tables")

    def few_rows() -> str:
        """What each member brings on few rows."""
        found = result("few_rows")
        rows = []
        for model in found["models"]:
            of = [half(found, name, "log_loss")[model] for name in found["halves"]]
            n = [found["summary"][name]["log_loss"]["number of sets"] for name in found["halves"]]
            lower = [
                f"{one['better than']['before'] * k:.0f} of {k}"
                for one, k in zip(of, n, strict=True)
            ]
            rows.append([model, *(f"{one['mean']:.3f}" for one in of), *lower[:2]])
        header = ["committee", *(f"log-loss, {name}" for name in found["halves"])]
        header += [f"lower than before, {name}" for name in list(found["halves"])[:2]]
        return made_by(table(header, rows), "few_rows")

    def kernel_families() -> str:
        found = result("kernels")
        loss, error = half(found, "all", "log_loss"), half(found, "all", "error")
        losses, models = means(found, "log_loss"), list(found["models"])
        rows = [
            [
                model,
                f"{error[model]['mean']:.2f}",
                f"{loss[model]['mean']:.4f}",
                apart(losses[:, models.index("rbf")] - losses[:, place]) if model != "rbf" else "",
                f"{loss[model]['rank']:.1f}",
            ]
            for place, model in enumerate(models)
        ]
        header = ["kernels", "test error, %", "log-loss", "log-loss less than rbf", "mean rank"]
        return made_by(table(header, rows), "kernels")

    def rbf_or_not() -> str:
        """R² of `tune` with and without rbf, over the sets of each half."""
        found, rows = result("rbf"), []
        for name, measures in found["summary"].items():
            models, values = measures["r2"]["models"], means(found, "r2", name)
            cells = [f"{one['mean']:.3f}, {one['worst']:.2f}" for one in models.values()]
            ahead = models["without rbf"]["better than"]["tune"]
            n = measures["r2"]["number of sets"]
            cells += [apart(values[:, 1] - values[:, 0]), f"{ahead * n:.0f} of {n}"]
            rows.append([name, *cells])
        for name in found["halves"]["smooth"]:
            (a, _), (b, _) = found["sets"]["r2"][name]
            rows.append([name, f"{a:.3f}", f"{b:.3f}", f"{b - a:+.4f}", ""])
        header = ["sets", "`tune`: mean R², worst split", "without rbf", "difference"]
        return made_by(table([*header, "without rbf ahead on"], rows), "rbf")

    def calibration() -> str:
        found, rows = result("calibration"), []
        for model in found["models"]:
            loss = [half(found, name, "log_loss")[model] for name in found["halves"]]
            last = list(found["halves"])[-1]
            cells = [f"{one['mean']:.3f}, {one['rank']:.1f}" for one in loss]
            cells += [f"{half(found, last, 'error')[model]['mean']:.1f}"]
            cells += [f"{half(found, last, 'calibration')[model]['mean']:.3f}"]
            rows.append([*(f'`"{part}"`' for part in model.split(", ")), *cells])
        header = ["`criterion`", "`calibration`"]
        header += [f"log-loss and rank, {name}" for name in found["halves"]]
        return made_by(table([*header, "error %", "calibration error"], rows), "calibration")

    def tabpfn() -> str:
        found, rows = result("tabpfn"), []
        for measure, words in (("log_loss", "log-loss"), ("r2", "R²")):
            for name, values in found["sets"][measure].items():
                rows.append([name, words, *(f"{mean:.3f}" for mean, _ in values)])
            of = half(found, "all", measure)
            rows.append(["mean", words, *(f"**{one['mean']:.3f}**" for one in of.values())])
        return made_by(table(["set", "", *found["models"]], rows), "tabpfn")

    def encodings() -> str:
        """Losses relative to a column for each level as it is, over the tables."""
        found = result("encodings")
        losses = means(found, "loss")
        relative, models = losses / losses[:, :1], half(found, "all", "loss")
        rows = [
            [
                model,
                f"{of.mean():.3f}",
                f"{of.max():.2f}",
                f"{np.sum(of < 1 - 1e-9)} / {np.sum(of > 1 + 1e-9)}",
                f"{models[model]['rank']:.1f}",
            ]
            for model, of in zip(models, relative.T, strict=True)
        ]
        header = ["encoding", "loss, relative", "on the worst table", "better / worse on"]
        return made_by(table([*header, "mean rank"], rows), "encodings")

    def search_quality() -> str:
        names, rows = ("search_500", "search_1200"), []
        for name in names:
            found = result(name)
            criterion, error = means(found, "criterion"), means(found, "error")
            worse = 100.0 * (criterion[:, 1] / criterion[:, 0] - 1.0)
            points, fit = error[:, 1] - error[:, 0], half(found, "all", "fit")
            rows.append(
                [
                    f"{name.split('_')[1]} rows, {len(worse)} sets",
                    f"{worse.mean():.3f} %",
                    f"{worse.max():.2f} %",
                    f"{points.mean():+.3f}",
                    f"{points[np.abs(points).argmax()]:+.2f}",
                    f"{fit['full']['mean'] / fit['auto']['mean']:.1f}",
                ]
            )
        header = ["default search beside the full one", "criterion worse by, mean", "most"]
        header += ["test error, points: mean difference", "most", "times faster"]
        return made_by(table(header, rows), *names)

    def refinement() -> str:
        found, rows = result("refinement"), []
        models = list(found["models"])
        for place in range(0, len(models), 2):
            for name, errors in found["sets"]["error"].items():
                criterion = found["sets"]["criterion"][name]
                lower = 1 - criterion[place + 1][0] / criterion[place][0]
                cells = [f"{mean:.2f} ± {error:.2f}" for mean, error in errors[place : place + 2]]
                title = models[place].rsplit(", ", 1)[0]
                rows.append([f"{title}, {name}", f"{lower:.1%}", *cells])
        header = ["model, generator", "criterion lower by", "test error %, lattice", "refined"]
        return made_by(table(header, rows), "refinement")

    def landmarks() -> str:
        """Mean errors at every number of landmarks."""
        found = result("landmarks")
        of = {
            name: dict(zip(found["models"], (v[0] for v in values), strict=True))
            for name, values in found["sets"]["error"].items()
        }
        sizes = dict.fromkeys(model.split()[1] for model in found["models"] if " " in model)
        rows = [
            [method, *(" / ".join(f"{e[f'{method} {m}']:.1f}" for m in sizes) for e in of.values())]
            for method in dict.fromkeys(m.split()[0] for m in found["models"] if " " in m)
        ]
        exact = [f"{name} (exact {errors['exact']:.1f})" for name, errors in of.items()]
        return made_by(table([f"m = {' / '.join(sizes)}", *exact], rows), "landmarks")

    made = (
        *(accuracy_wins, public_classes, public_numbers, few_rows, kernel_families, rbf_or_not),
        *(calibration, tabpfn, encodings, search_quality, refinement, landmarks),
    )
    return {one.__name__: one for one in made} | {
        "accuracy_ranks": lambda: ranks("reporting"),
        "accuracy_deciding": lambda: ranks("deciding"),
        "accuracy_errors": lambda: by_set("error", 1),
        "accuracy_losses": lambda: by_set("log_loss", 3),
    }


# ---- simulations ---------------------------------------------------------------------------------

SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "r2": "R²",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "beyond": "a loss of one's own",
}
CRITERIA = {"density": "loo_log_density", "likelihood": "marginal_likelihood"}
METHODS = ("jackknife+", "cv+", "full", "jackknife-minmax")


class Simulated:
    """Tables and figures of the simulations."""

    def __init__(self, result: Result, made_by: MadeBy) -> None:
        self.result, self.made_by = result, made_by

    def rows(self, name: str, /, **setting: Any) -> list[Row]:
        """Those with this setting."""
        rows: Iterable[Row] = self.result(name)["rows"]
        asked = setting.items()
        return [row for row in rows if all(row["setting"].get(k) == v for k, v in asked)]

    def mean(self, name: str, score: str, /, **setting: Any) -> float:
        (row,) = self.rows(name, **setting)
        return float(row[score]["mean"])

    def percent(self, name: str, score: str, /, **setting: Any) -> str:
        return f"{100 * self.mean(name, score, **setting):.0f} %"

    def tables(self) -> dict[str, Callable[[], str]]:
        return {
            "coverage": self.coverage,
            "score_intervals": self.scores,
            "partitions": self.partitions,
            "confound_levels": self.confounds,
        }

    def coverage(self) -> str:
        """Of prediction intervals, by source, parameters and method."""
        rows = [
            [
                row["setting"]["law"],
                "tuned" if row["setting"]["tuned"] else "fixed",
                *(f"{row[method]['mean']:.1%}" for method in METHODS),
            ]
            for row in self.rows("intervals")
        ]
        n = self.rows("intervals")[0]["setting"]["n"]
        least = (0.8, 0.8 - np.sqrt(2.0 / n), 0.9, 0.9)
        rows.append(["*guaranteed*", "fixed", *(f"*{share:.1%}*" for share in least)])
        header = ["source", "parameters", *(f'`"{method}"`' for method in METHODS)]
        return self.made_by(table(header, rows), "intervals")

    def scores(self) -> str:
        """How often the interval of each score held the true one, for each kind of model."""
        plain = self.rows("scores", counts=None, n_groups=None)
        kinds = {
            "fixed": [row for row in plain if not row["setting"]["tuned"]],
            "tuned": [row for row in plain if row["setting"]["tuned"]],
            "20 groups": self.rows("scores", n_groups=20),
            "8 groups": self.rows("scores", n_groups=8),
        }
        rows = [
            [words, *(shares(kind, score) for kind in kinds.values())]
            for score, words in SCORES.items()
        ]
        return self.made_by(table(["score", *kinds], rows), "scores")

    def partitions(self) -> str:
        rows, methods = [], ("Wilson", "Wilson, ten partitions", "corrected t", "assess")
        for row in self.rows("partitions"):
            cells = (f"{row[m]['mean']:.0%} ({row[f'{m} width']['mean']:.2f})" for m in methods)
            rows.append([row["setting"]["n"], f"{row['accuracy']['mean']:.0%}", *cells])
        return self.made_by(table(["rows", "accuracy", *methods], rows), "partitions")

    def confounds(self) -> str:
        """How often tests with confounds reject where nothing is there, linear kernel."""
        words = {
            "ignored": "none, labels move freely",
            "levels": "categories",
            "numbers": "a number",
            "squares": "a number and its square",
        }
        rows = []
        for row in self.rows("confounds", n=100, kernel="linear"):
            given = row["setting"]
            few = self.rows("confounds", **{**given, "n": 40})
            cell = f"{few[0]['rejected']['mean']:.1%}" if few else "–"
            said = [words[given["confounds"]], given["task"], given["effect"], cell]
            rows.append([*said, f"{row['rejected']['mean']:.1%}"])
        rows.sort(key=lambda row: list(words.values()).index(row[0]))
        header = ["confounds given", "target", "their effect", "40 rows", "100 rows"]
        return self.made_by(table(header, rows), "confounds")

    def figures(self) -> dict[str, str]:
        """Figures inside sentences."""
        percent, hard = self.percent, partial(self.mean, "hard")
        selection = {"what": "selection"}
        found = {
            "covered_few": percent("hard", "jackknife+", what="few", n=20),
            "covered_few_minmax": percent("hard", "jackknife-minmax", what="few", n=20),
            "selected_loss": f"{hard('Pipeline log-loss', **selection):.2f}",
            "selected_loss_whole": f"{hard('TunedPipeline log-loss', **selection):.2f}",
            "selected_sets": percent("hard", "Pipeline sets", **selection),
            "tuned_shortfall": self.tuned_shortfall(),
            "rejected_alternating": self.rejected("in the order of rows"),
            "rejected_stratified": self.rejected("stratified"),
            "rejected_together": f"{max(self.rates(permute='cosets')):.0f} %",
            "partition_shortfall": self.partition_shortfall(50),
        }
        for n, (name, criterion) in product((40, 100), CRITERIA.items()):
            found[f"covered_{name}_{n}"] = percent("hard", criterion, what="density", n=n)
        for name, per_class in (("rare", False), ("rare_per_class", True)):
            given = {"what": "rare", "per_class": per_class}
            found[f"covered_{name}"] = percent("hard", "rare", **given)
            found[f"size_{name}"] = f"{hard('size', **given):.2f}"
        found["covered_rare_all"] = percent("hard", "all", what="rare", per_class=False)
        for few in (15, 25):
            (row,) = self.rows("noise", few=few, many=few)
            bias = row["bias"]
            found[f"noise_bias_{few}"] = (
                f"{100 * bias['mean']:+.1f} ± {100 * bias['error']:.1f} points"
            )
        plain = self.rows("scores", counts=None, n_groups=None)
        for tuned, end in ((False, ""), (True, "_tuned")):
            kind = [row for row in plain if row["setting"]["tuned"] == tuned]
            for name in ("accuracy", "r2", "log_loss"):
                found[f"covered_{name}{end}"] = shares(kind, name)
        return found

    def rates(self, **setting: Any) -> list[float]:
        """Shares of noise that permutation tests reject, in percent."""
        return [100 * row["rejected"]["mean"] for row in self.rows("permutations", **setting)]

    def rejected(self, folds: str) -> str:
        found = self.rates(folds=folds, permute="free")
        return f"{min(found):.0f} to {max(found):.0f} %"

    def tuned_shortfall(self) -> str:
        """By how many points tuning lowers the coverage of jackknife+, at most."""
        fixed, tuned = (
            {r["setting"]["law"]: r["jackknife+"]["mean"] for r in self.rows("intervals", tuned=t)}
            for t in (False, True)
        )
        return f"{100 * max(fixed[law] - tuned[law] for law in fixed):.1f}"

    def partition_shortfall(self, n: int) -> str:
        """By how many points Wilson's interval of one partition falls short of 95 %."""
        lost = [100 * (0.95 - row["Wilson"]["mean"]) for row in self.rows("partitions", n=n)]
        return f"{min(lost):.0f} to {max(lost):.0f}"


def shares(rows: list[Row], name: str) -> str:
    """The share over some settings in percent, with its binomial error and the draws."""
    counts = np.array([(row[name]["mean"], row[name]["n"]) for row in rows if name in row])
    if not len(counts):
        return ""
    share, n = np.average(counts[:, 0], weights=counts[:, 1]), counts[:, 1].sum()
    error = 100 * np.sqrt(share * (1 - share) / n)
    return f"{100 * share:.1f} ± {error:.1f} % ({n:,.0f} draws)"
