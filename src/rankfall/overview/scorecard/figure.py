"""The figure of the scorecard at one setting: a row per architecture and a column per headline number, shaded from the largest to the
smallest loss."""

from textwrap import fill

import numpy as np
import seaborn

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.report.headlines import Headline
from rankfall.report.labels import many
from rankfall.report.quantities import STUDIES
from rankfall.report.ranking import shade
from rankfall.report.score_text import (
    choose,
    is_equal,
    list_attainable,
    name_row,
    say_seeds,
    score_grid,
    write_chance,
    write_score,
)
from rankfall.report.settings import Setting, rows_at, say_setting
from rankfall.report.style import WIDTH, Picture, canvas

FINDS = ["headline"]
KEEPS = 0.5  # residual at the last layer from which a network counts as keeping it
FITS = 11  # letters of a cell at the usual size
WIDE, HIGH, LABELS, HEADER = 0.74, 0.235, 2.1, 1.95  # inches of a column, a row, the names, and the headings
LOW = 0.9  # inches of headings that are names of architectures


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
    at, chosen = choose(table, numbers, setting, "figure scorecard")
    others = table.setting.nunique() - 1
    table = rows_at(table, at)
    shown = [headline for headline in chosen if table[headline.name].notna().any()]
    if not shown:
        raise RankfallError(f"figure scorecard: no architecture has any of the numbers at the setting {at.label!r}")
    equal = [headline for headline in shown if not numbers and is_equal(table, headline)]
    shown = [headline for headline in shown if headline not in equal] or shown
    table = table.sort_values(["residual_last", "architecture", "variant"], na_position="last")
    omitted, table = max(len(table) - most, 0), table.head(most)
    across = LABELS + WIDE * len(shown) <= WIDTH or len(table) > (WIDTH - LABELS) / WIDE  # else numbers run down
    columns, rows = (len(shown), len(table)) if across else (len(table), len(shown))
    height = (HEADER if across else LOW) + HIGH * rows
    figure, ((panel,),) = canvas(1, 1, LABELS + WIDE * columns, height)
    draw(panel, table, shown, at, across)
    figure.suptitle(f"{say_setting(at.label)} ({at.sizes})", fontsize=8.5)
    return Picture(figure, caption(table, at, shown, equal, omitted, others))


def draw(panel: Axes, table: DataFrame, shown: list[Headline], setting: Setting, across: bool) -> None:
    """Draw a square for each number, a column for each headline if `across`, else a row."""
    shades = np.array([shade(table, headline, setting) for headline in shown]).T
    grid = score_grid(table, shown).iloc[: len(table)]
    words, titles, names = grid.to_numpy(), [headline.title for headline in shown], list(grid.index)
    seaborn.heatmap(
        shades if across else shades.T,
        ax=panel,
        cmap=seaborn.light_palette("#0072B2", as_cmap=True),
        vmin=0,
        vmax=1.6,
        cbar=False,
        linewidths=0.6,
        linecolor="white",
        xticklabels=[fill(title, 13) for title in (titles if across else names)],
        yticklabels=names if across else titles,
    )
    for y, line in enumerate(words if across else words.T):
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
            (panel.axvline if across else panel.axhline)(of_study[0], color="#444444", linewidth=1)


def caption(
    table: DataFrame, setting: Setting, shown: list[Headline], equal: list[Headline], omitted: int, others: int
) -> str:
    """Describe what is shown and what is left out."""
    count = many(len(table), "architecture")
    more = f" In the table: {many(omitted, 'more row')} of this setting, {many(others, 'other setting')}."
    lost = [f"{name_row(row)} ({row.done} of {row.cells})" for _, row in table[table.done < table.cells].iterrows()]
    chances = [f"{headline.title} {chance}" for headline in shown if (chance := write_chance(table, headline))]
    beside = f" Chance: {'; '.join(chances)}." if chances else ""
    beside += "".join(f" {note[0].upper()}{note[1:]}." for note in list_attainable(table, shown, titles=True))
    incomplete = f" Not all seeds are left of {', '.join(lost)}." if lost else ""
    same = "".join(
        f" All have the same {headline.title}, {write_score(table.iloc[0], headline)}." for headline in equal
    )
    keep = table.residual_last[table.residual_last.notna()] >= KEEPS
    kept = f" {keep.sum()} of {len(keep)} end with a residual of at least {KEEPS}." if len(keep) else ""
    return (
        f"Headline numbers of {count} at {say_setting(setting.label)} ({setting.sizes}), {say_seeds(table, shown)}. "
        "The darker, the more of the others keep less, or take more time, compared seed by seed; a tie counts half. "
        "Grey: neither end is better, or one seed decides nothing. "
        f"Dash: no such number. Blank: not measured. Floor: rounding noise of float64.{kept}{same}{beside}{incomplete}{more}"
    )
