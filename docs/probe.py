"""Prints the numbers of the probe in docs/position.md, from the tables of a run.

make run CONFIG=workflow/presets/position.yaml
python docs/probe.py results/position
"""

import sys
from pathlib import Path

import pandas as pd

from rankfall.report.tables import read_frame


def matrix(probe: pd.DataFrame) -> None:
    """How theory and random weights compare, and which argument decides how often."""
    print(
        f"{len(probe)} combinations; " + "; ".join(f"{n} {said}" for said, n in probe.agreement.value_counts().items())
    )
    print(f"equal rows differ by at most {probe.widest_equal.max():.0e}, distinct ones by at least", end=" ")
    print(f"{probe.narrowest_distinct.min():.0e}")
    measured = probe[probe.untrained_rows.notna()]
    print("\nargument      combinations  rows by theory")
    for argument, part in measured.groupby("argument"):
        rows = ", ".join(str(int(n)) for n in sorted(part.theory_rows.dropna().unique()))
        print(f"{argument:14}{len(part):12}  {rows}")
    for one in measured[measured.agreement != "agree"].itertuples():
        print(f"\n{one.attention}, {one.normaliser}, {one.position}, {one.mask}, {one.sentinels}: ", end="")
        print(f"theory {one.theory_rows}, random weights {one.untrained_rows}; {one.reason}")


def networks(trained: pd.DataFrame) -> None:
    """Accuracy by length, seeds that pass at the trained length, and what failed."""
    done = trained[trained.status == "done"]
    print(f"\n{trained.key.nunique()} trained networks, {done.key.nunique()} done; accuracy by length, mean over seeds")
    keys = ["attention", "normaliser", "position", "mask", "sentinels"]
    names = done[keys].apply(lambda row: ", ".join(str(part).partition("(")[0] for part in row), axis=1)
    by_length = done.assign(name=names).pivot_table(index="name", columns="length", values="accuracy", aggfunc="mean")
    at = done.assign(name=names)[done.length == 8].groupby("name")
    about = pd.DataFrame(
        {"theory": at.theory_rows.first(), "seeds that pass": at.passes.sum(), "of": at.seed.nunique()}
    )
    print(by_length.round(2).join(about).to_string())
    print(f"\nmore than theory allows: {int((done.agreement == 'more than theory allows').sum())}")
    inside = done[~done.beyond.astype(bool) & (done.agreement == "training falls short")]
    why = inside.agreement_reason.str.split("; ").str[-1].str.replace(r"[\d.]+", "#", regex=True)
    print(f"training falls short inside the trained lengths: {len(inside)} of {int((~done.beyond.astype(bool)).sum())}")
    print(why.value_counts().to_string(header=False))


def claims(reproduction: pd.DataFrame) -> None:
    """Su's findings: held or refuted, at each setting."""
    print("\nSu 2022 (second-hand)")
    for one in reproduction[reproduction.source == "Su 9105"].itertuples():
        ours = (
            "not measured" if one.ours != one.ours else f"{one.ours:.3g}, {'holds' if one.holds else 'does not hold'}"
        )
        seeds = f", {one.held} of {one.seeds} seeds" if one.seeds > 1 else ""
        print(f"{one.name} ({one.setting}): {one.published:.3g}; ours {ours}{seeds}")


def main(folder: Path) -> None:
    matrix(read_frame(folder / "tables" / "probe.parquet", "probe"))
    networks(read_frame(folder / "tables" / "probe_trained.parquet", "probe_trained"))
    claims(read_frame(folder / "tables" / "reproduction.parquet", "reproduction"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/position"))
