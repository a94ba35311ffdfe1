"""Effects of interventions on whether networks train, by architectures that fail and that train without them."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankfall import BLUE, GREY, RED, Band, DataFrame, band
from studies.common import Answer, above, below, both, by_band

NETWORK = ["task", "placement", "skip", "depth", "gain"]
READ = ["own_first", "residual_step_50", "entropy_step_50", "gradient_queries_step_50", "gradient_keys_step_50"]


def summarise(table: DataFrame) -> DataFrame:
    """Return one row for each network x arm, with numbers of the base arm: `own` at birth, the others after 50 steps."""
    return table[[*NETWORK, "arm", "seed", "score", "diverged", *READ]]


def effects(table: DataFrame, thresholds: dict[str, float]) -> DataFrame:
    """Return the effect of each arm on each architecture x task: score less that of base, mean over seeds. `failing`: the sham arm fails.

    The sham arm chooses the groups and decides no statement, so chance in the base arm lets no group gain or lose."""
    scores = table.pivot_table(index=[*NETWORK, "seed"], columns="arm", values="score")
    change = scores.sub(scores["base"], axis=0).groupby(NETWORK).mean().drop(columns="base")
    failing = (scores["sham"].groupby(NETWORK).mean() < thresholds["trains"]).rename("failing")
    return change.melt(ignore_index=False, var_name="arm", value_name="effect").join(failing).reset_index()


def decide(table: DataFrame, thresholds: dict[str, float]) -> dict[str, Answer]:
    changes, least = effects(table, thresholds), thresholds["effect"]

    def effect(arm: str, failing: bool) -> Any:
        return changes[(changes.arm == arm) & (changes.failing == failing)].effect

    return {
        "up": below(effect("up", True), least),
        "apart": below(effect("apart", True), least),
        "down": above(effect("down", False), -least),
        "fast": above(effect("fast", True), least),
        "frozen": below(effect("frozen", False), -least),
        "entropy": both(below(effect("entropy high", True), least), below(effect("entropy low", True), least)),
        "residual_within": by_band(beyond(table, "residual_step_50"), thresholds["within"]),
        "gradient_within": by_band(beyond(table, "gradient_queries_step_50"), thresholds["within"]),
    }


def beyond(table: DataFrame, number: str) -> Band:
    """Return the correlation of the log of an early number with the score, within architectures x tasks.

    Seeds of some architectures differ far more than those of others, so the 95% interval is a bootstrap over architectures x tasks."""
    base = table[(table.arm == "base") & (table[number] > 0)]
    logs = base.assign(x=np.log(base[number]), y=base.score)
    x, y = (logs[name] - logs.groupby(NETWORK)[name].transform("mean") for name in "xy")
    sums = (
        logs.assign(xy=x * y, xx=x * x, yy=y * y).groupby(NETWORK)[["xy", "xx", "yy"]].sum().to_numpy()
    )  # (groups, 3)
    drawn = np.random.default_rng(0).integers(len(sums), size=(4000, len(sums)))

    def correlation(total: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0, if no seed differs from another
            return total[..., 0] / np.sqrt(total[..., 1] * total[..., 2])

    low, high = np.nanquantile(correlation(sums[drawn].sum(1)), (0.025, 0.975))
    return Band(float(correlation(sums.sum(0))), float(low), float(high), len(sums))


def influence(table: DataFrame, number: str) -> dict[str, Any]:
    """Return the range of the correlation without any one architecture x task: a group whose seeds differ much weighs much."""
    base = table[table.arm == "base"]
    without = [beyond(base.drop(rows.index), number).mean for _, rows in base.groupby(NETWORK)]
    return {"number": number, "all": beyond(base, number).mean, "least": min(without), "most": max(without)}


def details(table: DataFrame, thresholds: dict[str, float]) -> dict[str, DataFrame]:
    """Return four tables: effects by arm; the null model; how many architectures x tasks fail by depth, skip and place of the norm; how
    far a single one moves a correlation."""
    trains = table.pivot_table(index=[*NETWORK, "seed"], columns="arm", values="score") >= thresholds["trains"]
    null = {
        "explained": share_explained(table),
        "networks": len(trains),
        "moved_by_sham": int((trains["base"] ^ trains["sham"]).sum()),
    }
    fails = effects(table, thresholds).drop_duplicates(NETWORK)
    fails = fails.groupby(["depth", "skip", "placement"]).failing.agg(["sum", "size"]).reset_index()
    influences = pd.DataFrame(influence(table, name) for name in ("residual_step_50", "gradient_queries_step_50"))
    tables = {"arms": by_arm(table, thresholds), "null": pd.DataFrame([null])}
    return tables | {"fails": fails, "influence": influences}


def share_explained(table: DataFrame) -> float:
    """Return the share of the base score's variance between architectures x tasks (R2 of flags): the null model."""
    base = table[table.arm == "base"]
    error = base.score - base.groupby(NETWORK).score.transform("mean")
    return float(1 - error.var(ddof=0) / base.score.var(ddof=0))


def by_arm(table: DataFrame, thresholds: dict[str, float]) -> DataFrame:
    """Return the mean effect of each arm on failing and on training architectures, and the networks that change sides."""
    rows = []
    for (arm, failing), group in effects(table, thresholds).groupby(["arm", "failing"], sort=False):
        scores = table.pivot_table(index=[*NETWORK, "seed"], columns="arm", values="score")
        networks = scores.reset_index().merge(group[[*NETWORK, "failing"]], on=NETWORK)
        before, after = networks["base"] >= thresholds["trains"], networks[arm] >= thresholds["trains"]
        interval = band(group.effect)
        rows.append(
            {"arm": arm, "failing": failing, "effect": interval.mean, "low": interval.low, "high": interval.high}
            | {"architectures": interval.seeds, "networks": len(networks)}
            | {"rescued": int((after & ~before).sum()), "broken": int((before & ~after).sum())}
        )
    return pd.DataFrame(rows)


def draw(table: DataFrame, thresholds: dict[str, float]) -> Any:
    rows = by_arm(table, thresholds)
    arms = [arm for arm in table.arm.drop_duplicates() if arm not in ("base", "sham")][::-1]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), gridspec_kw={"width_ratios": (3, 2)})
    for failing, colour, name in ((True, RED, "fail in the sham arm"), (False, BLUE, "train in the sham arm")):
        group = rows[rows.failing == failing].set_index("arm").reindex(arms)
        if group.effect.isna().all():
            continue
        y = np.arange(len(arms)) + (0.15 if failing else -0.15)
        count = int(group.architectures.max())
        left.hlines(y, group.low, group.high, color=colour)
        left.plot(group.effect, y, "o", color=colour, markersize=5, label=f"{count} architectures x tasks that {name}")
    left.axvspan(-thresholds["effect"], thresholds["effect"], color=GREY, alpha=0.15, lw=0)
    left.axvline(0, color=GREY, lw=0.8)
    left.set(yticks=range(len(arms)), yticklabels=arms, xlabel="change of the score (chance is 0, perfect is 1)")
    left.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    base = table[table.arm == "base"]
    for task, marker in zip(sorted(base.task.unique()), "os"):
        for skips, colour, name in ((False, RED, "no skips"), (True, BLUE, "skips")):
            runs = base[(base.task == task) & ((base.skip > 0) == skips)]
            right.plot(
                runs.residual_step_50, runs.score, marker, color=colour, markerfacecolor="none", label=f"{task}, {name}"
            )
    right.axhline(thresholds["trains"], color=GREY, lw=0.8)
    right.set(xscale="log", xlabel="residual of the last layer after 50 steps", ylabel="score at the end")
    right.legend(fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.tight_layout()
    return figure
