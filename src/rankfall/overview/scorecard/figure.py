"""The figure of the scorecard at one setting: a row per architecture and a column per headline number, shaded from the largest to the
smallest loss."""

from textwrap import fill

import numpy as np
import seaborn

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.report.headlines import Headline
from rankfall.report.quantities import STUDIES
from rankfall.report.ranking import shade
from rankfall.report.score_text import choose, list_attainable, name_row, say_seeds, write_chance, write_score
from rankfall.report.settings import Setting, rows_at, say_setting
from rankfall.report.style import Picture, canvas

TABLES = ["scorecard"]
FINDS = ["headline"]
KEEPS = 0.5  # residual at the last layer from which a network counts as keeping it
FITS = 11  # letters of a cell at the usual size
WIDE, HIGH, LABELS, HEADER = 0.74, 0.235, 2.1, 1.95  # inches of a column, a row, the names, and the headings


def scorecard(
    read: Read,
    *,
    setting: str = "",
    architectures: list[str] = [],
    numbers: list[str] = [],
    most: int = 60,
) -> Picture:
    """Draw all architectures and all numbers if none are named. Numbers that no architecture has are left out. `setting` is a value of the
    table's column, by default the one with most of these numbers. `most` limits the rows."""
    table = read("scorecard")
    if architectures:
        table = table[table.architecture.isin(architectures)]
    if not len(table):
        raise RankfallError("figure scorecard: it has no architecture, so there is nothing to draw")
    at, chosen = choose(table, numbers, setting, "figure scorecard")
    others = table.setting.nunique() - 1
    table = rows_at(table, at)
    shown = [headline for headline in chosen if table[headline.name].notna().any()]
    if not shown:
        raise RankfallError(f"figure scorecard: no architecture has any of the numbers at the setting {at.label!r}")
    table = table.sort_values(["residual_last", "architecture", "variant"], na_position="last")
    left, table = max(len(table) - most, 0), table.head(most)
    figure, ((panel,),) = canvas(
        1, 1, LABELS + WIDE * len(shown), HEADER + HIGH * len(table), gridspec_kw={"left": 0.2}
    )
    draw(panel, table, shown, at)
    figure.suptitle(f"{say_setting(at.label)} ({at.sizes})", fontsize=8.5)
    return Picture(figure, caption(table, at, shown, left, others))


def draw(panel: Axes, table: DataFrame, shown: list[Headline], setting: Setting) -> None:
    shades = np.array([shade(table, headline, setting) for headline in shown]).T
    words: np.ndarray = np.array([[write_score(row, headline) for headline in shown] for _, row in table.iterrows()])
    seaborn.heatmap(
        shades,
        ax=panel,
        cmap=seaborn.light_palette("#0072B2", as_cmap=True),
        vmin=0,
        vmax=1.6,
        cbar=False,
        linewidths=0.6,
        linecolor="white",
        xticklabels=[fill(headline.title, 13) for headline in shown],
        yticklabels=[name_row(row) for _, row in table.iterrows()],
    )
    for y, line in enumerate(words):
        for x, word in enumerate(line):
            size = 7 if len(word) <= FITS else 5.5
            panel.text(x + 0.5, y + 0.5, word, ha="center", va="center", fontsize=size, color="#111111")
    panel.xaxis.tick_top()
    panel.tick_params(axis="x", labelsize=6.5, rotation=0, length=0, pad=2)
    panel.tick_params(axis="y", labelsize=7.5, rotation=0, length=0)
    panel.grid(visible=False)
    for study in STUDIES:
        of_study = [place for place, headline in enumerate(shown) if headline.study == study]
        if of_study and of_study[0]:
            panel.axvline(of_study[0], color="#444444", linewidth=1)


def caption(table: DataFrame, setting: Setting, shown: list[Headline], left: int, others: int) -> str:
    """Describe what is shown and what is left out."""
    count = f"{len(table)} architecture{'s' * (len(table) != 1)}"
    more = f" {left} more of this setting are in the table." if left else ""
    more += f" {others} other setting{'s are' if others > 1 else ' is'} in the table." if others else ""
    lost = [f"{name_row(row)} ({row.done} of {row.cells})" for _, row in table[table.done < table.cells].iterrows()]
    chances = [f"{headline.title} {said}" for headline in shown if (said := write_chance(table, headline))]
    beside = f" Chance: {'; '.join(chances)}." if chances else ""
    beside += "".join(f" {note[0].upper()}{note[1:]}." for note in list_attainable(table, shown, titles=True))
    gone = f" Not all seeds are left of {', '.join(lost)}." if lost else ""
    keep = table.residual_last[table.residual_last.notna()] >= KEEPS
    kept = f" {keep.sum()} of {len(keep)} end with a residual of at least {KEEPS}." if len(keep) else ""
    return (
        f"Headline numbers of {count} at {say_setting(setting.label)} ({setting.sizes}), {say_seeds(table, shown)}; "
        "darker where more is kept than by the others of this setting, seed by seed (alike where two tie; grey where neither end is "
        "better, and where there is one seed, which decides nothing), a dash where there is no such number, blank "
        "where nothing was measured, floor where all is rounding noise of "
        f"float64.{kept}{beside}{gone}{more}"
    )
