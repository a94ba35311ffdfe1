"""Sentences that the captions of figures share: what lines and bands are, where lines end, and what is not drawn."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from rankfall.annotations import Axes, DataFrame, Figure, Series
from rankfall.report.labels import few, join, many, span_counts
from rankfall.report.looks import label
from rankfall.report.processors import describe_mixture
from rankfall.report.ranking import average, say_mean
from rankfall.report.selection import reasons_of
from rankfall.report.settings import differences

FATES = {"diverged": "diverged", "failed": "failed", "missing": "not computed yet"}
NAMED = 6  # largest number of lines that are listed
BAND = "one standard deviation"
OTHER = "another depth is drawn"


def describe_lines(drawn: DataFrame, by: Sequence[str], value: str = "", band: str = BAND, mean: str = "means") -> str:
    """Return "means over 5 seeds, bands one standard deviation". `by`: the columns that distinguish lines; `value`: the column that is
    drawn; an empty `band` leaves out the bands."""
    shown = drawn[drawn[value].notna()] if value else drawn
    counts = shown.groupby(list(by), observed=True).seed.nunique()
    mixture = describe_mixture(shown)
    bands = f", bands {band}" * bool(band and counts.max() > 1)
    return f"{mean} over {span_counts(counts, 'seed') or '0 seeds'}{f' {mixture}' * bool(mixture)}{bands}"


def describe_readings(rows: DataFrame, by: str) -> str:
    """Return "8 samples and 1 to 2 seeds of initial weights", for rows of models. Pretrained weights have no seed."""
    phrases = []
    for column, more in (("sample", ""), ("seed", " of initial weights")):
        counts = rows[rows[column] >= 0].groupby(by, observed=True)[column].nunique()
        if len(counts):
            phrases.append(span_counts(counts, column) + more)
    mixture = describe_mixture(rows)
    return f"{join(phrases)}{f' {mixture}' * bool(mixture)}"


def describe_ends(
    rows: DataFrame, value: str, write: Callable[[float], str] | int, by: str = "architecture", settings: bool = True
) -> str:
    """Return the lowest and the highest line at the end of an axis: "from 0.02 ± 0.01 (A) to 0.41 ± 0.03 (B)".

    `rows`: those at the end, one per line and seed; `write`: digits of a mean with its deviation, or a function for the mean alone;
    `settings`: whether lines may have several settings, whose numbers are not compared.
    """
    if settings and len(set(differences(rows, by).values())) > 1:
        return "not compared, since lines have different settings"
    means = average(rows, value, by).sort_values("mean", kind="stable")
    if means.empty:
        return "unknown"
    means = means.iloc[[0, -1]]
    ends = [
        say_mean(mean, deviation, write) if isinstance(write, int) else write(mean)
        for mean, deviation in zip(means["mean"], means["std"])
    ]
    words = [f"{end} ({label(name)})" for end, name in zip(ends, means.index)]
    if means.index[0] == means.index[1]:
        return words[0]
    return f"{ends[0]} in all" if ends[0] == ends[1] else f"from {words[0]} to {words[1]}"


def describe_missing(
    drawn: DataFrame,
    by: Sequence[str],
    value: str = "",
    whole: DataFrame | None = None,
    why: str = "nothing to draw",
) -> str:
    """Return a sentence on what is not drawn, preceded by a space; empty if everything is drawn.

    `drawn`: the rows that are drawn, and those whose `value` is null; `by`: the columns that distinguish lines; `whole`: all rows that were
    requested, of networks with any status; `why`: why a finished network is not drawn although its depth is.
    """
    lost: list[str] = []
    if whole is not None:
        cells = whole.drop_duplicates("key")
        undrawn = cells[~cells.key.isin(drawn.key)]
        reasons = [
            FATES.get(cell.status) or (why if is_drawn_at(cell, drawn, by) else OTHER) for _, cell in undrawn.iterrows()
        ]
        lost += count_by_reason(undrawn.assign(why=reasons), "network", by)
    if value:
        null = drawn[drawn[value].isna()]
        lost += count_by_reason(null.assign(why=reasons_of(null, value)), "value", by)
    return f" Not drawn: {'; '.join(lost)}." if lost else ""


def is_drawn_at(cell: Series, drawn: DataFrame, by: Sequence[str]) -> bool:
    """Return whether networks of a cell's depth are drawn, in its own line if that is drawn."""
    line = drawn[(drawn[list(by)] == list(cell[list(by)])).all(axis=1)]
    return cell.depth in set((line if len(line) else drawn).depth)


def count_by_reason(rows: DataFrame, noun: str, by: Sequence[str]) -> list[str]:
    """Return "3 networks (diverged: A 1, B 2)" for each reason in the column `why`. Values that are not names stand after their column."""
    varied = [name for name in by if rows[name].nunique(dropna=False) > 1] or list(by)[:1]
    phrases = []
    for why, part in rows.groupby("why", sort=False):
        lines = []
        for line, count in part.groupby(varied, sort=True, dropna=False).size().items():
            pairs = zip(varied, line if isinstance(line, tuple) else (line,))
            lines.append(
                " ".join([label(value) if isinstance(value, str) else f"{name} {value}" for name, value in pairs])
            )
            lines[-1] += f" {count}"
        phrases.append(f"{many(len(part), noun)} ({f'{why}: ' * bool(why)}{', '.join(few(lines, NAMED))})")
    return phrases


ALIKE = 0.01  # share of a panel's height below which the distance of two lines cannot be seen


def describe_coinciding(figure: Figure) -> str:
    """Return a sentence on lines that lie on top of each other, preceded by a space; empty if all lines can be distinguished."""
    panels = [panel for panel in figure.axes if len(panel.lines) > 1]
    titles = [" ".join((panel.get_title("left") or panel.get_title()).split()) for panel in panels]
    places: dict[tuple[str, ...], list[str]] = {}
    for panel, title in zip(panels, titles):
        groups: list[set[str]] = []
        name_pair = pair_namer(figure, panel)
        for pair in combinations(panel.lines, 2):
            names = name_pair(*pair)
            if len(names) == 2 and coincide(panel, *pair):
                names = names.union(*(group for group in groups if group & names))
                groups = [group for group in groups if not group & names] + [names]
        for group in groups:
            places.setdefault(tuple(sorted(group)), []).append(title)
    phrases = []
    for lines, at in sorted(places.items(), key=lambda item: -len(item[1])):
        named = len(set(titles)) == len(panels) and len(at) <= 2
        where = f" ({join(at) if named else f'{len(at)} of {len(panels)} panels'})" * (len(at) < len(panels))
        phrases.append(f"{join(lines)}{where}")
    return f" Lines on top of each other: {'; '.join(few(phrases, NAMED))}." if phrases else ""


def pair_namer(figure: Figure, panel: Axes) -> Callable[[Any, Any], set[str]]:
    """Return a function that names two lines as the legend or the texts beside their ends do: by colour, or if they have the same colour by
    their dashes."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    entries = [
        (to_hex(handle.get_color()), handle.get_linestyle(), text.get_text())
        for legend in figure.legends
        for handle, text in zip(legend.legend_handles, legend.get_texts())
        if isinstance(handle, Line2D)
    ]
    of_colour = {colour: text for colour, _, text in reversed(entries)}
    of_colour |= {to_hex(text.get_color()): text.get_text() for text in panel.texts}
    # Seaborn draws entries of dashes in this colour.
    of_dash = {dash: text for colour, dash, text in entries if colour == to_hex(".2")}

    def name_pair(first: Any, second: Any) -> set[str]:
        """Return the names by which the legend distinguishes two lines; one name or none if it does not."""
        colours = {to_hex(line.get_color()) for line in (first, second)}
        dashes = {line.get_linestyle() for line in (first, second)}
        if len(colours) == 1:
            return {of_dash[dash] for dash in dashes & of_dash.keys()}
        return {of_colour[colour] for colour in colours & of_colour.keys()} if len(dashes) == 1 else set()

    return name_pair


def coincide(panel: Axes, first: Any, second: Any) -> bool:
    """Return whether two lines have nearly the same height wherever the shorter one has points."""
    if any(line.get_transform() != panel.transData or line.get_linestyle() == "None" for line in (first, second)):
        return False
    points = [dict(zip(line.get_xdata(orig=False), line.get_ydata(orig=False))) for line in (first, second)]
    short, long = sorted(points, key=len)
    if len(short) < 2 or not set(short) <= set(long):
        return False
    shown = panel.transData + panel.transAxes.inverted()
    heights = [shown.transform([(x, line[x]) for x in short])[:, 1] for line in (short, long)]
    return bool((abs(heights[0] - heights[1]) < ALIKE).all())
