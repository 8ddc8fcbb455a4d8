"""The tables of accuracy.md, from the results of accuracy and calibration_few."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from _marked import table, wrapped

Result = Callable[[str], dict[str, Any]]
MadeBy = Callable[..., str]


def tables(result: Result, made_by: MadeBy, duration: Callable[[float], str]) -> dict[str, Any]:
    """What _figures.py writes, by name."""
    made = Tables(result, made_by, duration)
    return {
        "accuracy_ranks": lambda: made.ranks("reporting"),
        "accuracy_deciding": lambda: made.ranks("deciding"),
        "accuracy_counts": made.counts,
        "accuracy_errors": lambda: made.by_set("error", 1),
        "accuracy_losses": lambda: made.by_set("log_loss", 3),
        "accuracy_few_rows": made.few_rows,
        "accuracy_variants": made.variants,
        "public_classes": made.public_classes,
        "public_numbers": made.public_numbers,
        "few_rows": made.members,
    }


def _by_rank(found: dict[str, Any]) -> list[str]:
    """The methods of a summary, the best first; it counts tables and cases, too."""
    methods = [name for name in found if name not in ("tables", "cases")]
    return sorted(methods, key=lambda method: float(found[method]["rank"]))


def _rank(one: dict[str, Any]) -> str:
    return f"{one['rank']:.1f}"


def _wins(one: dict[str, Any]) -> list[str]:
    """The share of tables on which a model is better than each peer, in one cell."""
    shares = {name.removeprefix("better than "): v for name, v in one.items() if " than " in name}
    return [", ".join(f"{peer} {share:.0%}" for peer, share in shares.items())]


@dataclass(frozen=True)
class Tables:
    """The tables as Markdown, from a reader of results and two ways of writing."""

    result: Result
    made_by: MadeBy
    duration: Callable[[float], str]

    def ranks(self, half: str) -> str:
        found = self.result("accuracy")
        one = found["halves"][half]
        order = one["ranking"]["log_loss"]["ranks"]
        rows = []
        for model in order:
            title = found["titles"][model]
            means, times = one["means"], one["times"][model]
            rows.append(
                [
                    f"**{title}**" if model in found["ours"] else title,
                    f"{one['ranking']['error']['ranks'][model]:.1f}",
                    f"{one['ranking']['log_loss']['ranks'][model]:.1f}",
                    f"{one['ranking']['brier']['ranks'][model]:.1f}",
                    f"{one['ranking']['auc']['ranks'][model]:.1f}",
                    f"{means['error'][model]:.1f}",
                    f"{means['log_loss'][model]:.3f}",
                    f"{means['calibration'][model]:.3f}",
                    self.duration(times["fit"]),
                    self.duration(times["predict"]),
                ]
            )
        header = [
            f"{len(one['sets'])} {half} sets",
            *(f"rank, {what}" for what in ("error", "log-loss", "Brier", "AUC")),
            "mean error %",
            "mean log-loss",
            "calibration error",
            "fit, median",
            "predict, median",
        ]
        critical = one["ranking"]["error"]["critical_difference"]
        note = wrapped(
            "Bold: this package. Ranks differ significantly (Nemenyi, 5 %) where they are more "
            f"than {critical:.1f} apart; Friedman's test of equal ranks has p = "
            f"{one['ranking']['error']['friedman_p']:.1g} for errors, "
            f"{one['ranking']['log_loss']['friedman_p']:.1g} for log-losses. "
            f"{found['left out']}"
        )
        return self.made_by(table(header, rows) + "\n" + note, "accuracy")

    def public_classes(self) -> str:
        """Public tables with classes: both halves, since there are few."""
        rows = []
        for half, found in self.result("public_tables")["summary"].items():
            for method in _by_rank(found["log_loss"]):
                error, loss = found["error"][method], found["log_loss"][method]
                means = [_rank(loss), f"{loss['mean']:.3f}", _rank(error), f"{error['mean']:.3f}"]
                rows.append([half, method, *means, *_wins(loss)])
        header = ["half", "model", "rank, log-loss", "log-loss", "rank, error", "error"]
        better = "better than the peers in log-loss, share of tables"
        return self.made_by(table([*header, better], rows), "public_tables")

    def public_numbers(self) -> str:
        rows = []
        found = self.result("public_tables")["summary"]["reporting"]["r2"]
        for method in _by_rank(found):
            one = found[method]
            most = max(one["most behind the best peer"], 0.0)
            numbers = [f"{one['mean']:.3f}", f"{one['worst']:.3f}", f"{most:.2f}"]
            rows.append([method, _rank(one), *numbers, f"{one['far']:.2g}", *_wins(one)])
        header = [f"{found['tables']} tables", "rank", "mean R²", "worst R²"]
        header += ["most behind the best peer", "a far row, ranges off"]
        better = "better than the peers, share of tables"
        return self.made_by(table([*header, better], rows), "public_tables")

    def members(self) -> str:
        """What each member brings on few rows."""
        found = self.result("few_rows")
        halves = ("deciding", "reporting", "looked at last")
        kinds = found["deciding"]["mean"]
        rows = [
            [kind, *(f"{found[half]['mean'][kind]:.3f}" for half in halves)]
            + [f"{found[half]['lower than before'][kind]} of 12" for half in halves[:2]]
            for kind in kinds
        ]
        header = ["committee", *(f"log-loss, {half}" for half in halves)]
        header += [f"lower than before, {half}" for half in halves[:2]]
        return self.made_by(table(header, rows), "few_rows")

    def counts(self) -> str:
        found = self.result("accuracy")
        rows = []
        for model, by_peer in found["halves"]["reporting"]["against"].items():
            for peer, measures in by_peer.items():
                if peer not in found["ours"]:
                    cells = [counted(measures[measure]) for measure in ("error", "log_loss")]
                    rows.append([found["titles"][model], found["titles"][peer], *cells])
        header = ["", "beside", "error: ahead, level, behind", "log-loss: ahead, level, behind"]
        return self.made_by(table(header, rows), "accuracy")

    def by_set(self, measure: str, digits: int) -> str:
        found = self.result("accuracy")
        one = found["halves"]["reporting"]
        models = [model for model in found["titles"] if model in one["means"]["error"]]
        rows = []
        for name, values in one["sets"].items():
            cells = [values["models"][model][measure] for model in models]
            least = min(mean for mean, _ in cells)
            shown = [cell(mean, error, digits, mean == least) for mean, error in cells]
            what = f"{values['rows']} × {values['features']}, {values['classes']}"
            rows.append([name, what, str(values["splits"]), *shown])
        titles = [found["titles"][model] for model in models]
        return self.made_by(
            table(["set", "rows × columns, classes", "splits", *titles], rows), "accuracy"
        )

    def few_rows(self) -> str:
        found = self.result("calibration_few")["ratios"]
        names = list(next(iter(found.values()))["log_loss"]["sets"])
        rows = []
        for estimator, measures in found.items():
            for measure, what in (
                ("log_loss", "log-loss"),
                ("calibration_error", "calibration error"),
            ):
                one = measures[measure]
                cells = [f"{one['sets'][name]:.2f}" for name in names]
                middle = [two(one), two(one["elsewhere"])]
                rows.append([f"`{estimator}`", what, *middle, *cells])
        picked = ["picked on the test rows: median, worst", "picked on other splits"]
        header = ["default / best variant", "of", *picked, *names]
        return self.made_by(table(header, rows), "calibration_few")

    def variants(self) -> str:
        rows = []
        for half, one in self.result("accuracy")["halves"].items():
            for measure, ways in one.get("variants", {}).items():
                what = "log-loss" if measure == "log_loss" else "calibration error"
                cells = [f"{three(ways[way])}" for way in ("best", "best elsewhere")]
                rows.append([half, what, "–".join(map(str, ways["splits"])), *cells])
        picked = ["picked on the test rows: mean, median, worst", "picked on other splits"]
        return self.made_by(
            table(["half", "default / best variant", "splits", *picked], rows), "accuracy"
        )


def cell(mean: float, error: float | None, digits: int, bold: bool) -> str:
    text = f"**{mean:.{digits}f}**" if bold else f"{mean:.{digits}f}"
    return text if error is None else f"{text} ± {error:.{digits}f}"


def two(found: Mapping[str, Any]) -> str:
    return f"{found['median']:.2f}, {found['worst']:.2f}"


def three(found: Mapping[str, Any]) -> str:
    means = f"{found['mean']:.2f}, {found['median']:.2f}, {found['worst']:.2f}"
    return f"{means} ({found['worst set']})"


def counted(found: Mapping[str, int]) -> str:
    clear = f"clearly {found['clearly ahead']}, {found['clearly behind']}"
    return f"{found['ahead']}, {found['level']}, {found['behind']} ({clear})"
