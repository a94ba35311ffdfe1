"""The probe as a matrix: which attention can distinguish equal tokens, by theory, at random weights, and after training."""

from itertools import product
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from pandas import factorize

from rankfall.annotations import Axes, DataFrame, Figure, Read
from rankfall.errors import RankfallError
from rankfall.filters import matches_in_table, parts
from rankfall.rank.orders.figure import name_rows, word
from rankfall.report.captions import describe_missing
from rankfall.report.colours import DIRECTION, KEEPS, KEEPS_SOME, LOSES, UNKNOWN
from rankfall.report.labels import join, many
from rankfall.report.part_numbers import MADE_OF
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["probe", "probe_trained"]

ALL, SOME, ONE = KEEPS, KEEPS_SOME, LOSES
APART = "#c1121f"  # theory and measurement differ

DIFFER = ("fewer rows than theory allows", "more rows than theory allows")  # an undecided theory is no difference


def probe(read: Read, *, attentions: list[str] = []) -> Picture:
    """Draw the matrix, at the largest number of tokens and the largest depth that were measured.

    `attentions`: those to show, by default all.
    """
    table = read("probe")
    table = table[table.tokens == table.tokens.max()]
    table = table[table.depth == table.depth.max()]
    if attentions:
        table = table[table.attention.map(lambda name: parts(name)[0]).isin(attentions)]
    if table.empty:
        raise RankfallError(f"figure probe: no row has one of the attentions {', '.join(attentions) or 'asked for'}")
    counts = {name: table[name].astype("Float64").astype(float) for name in ("theory_rows", "untrained_rows")}
    table = table.assign(**counts, row=name_rows(table))
    n = int(table.tokens.iloc[0])
    networks = read("probe_trained")
    learned, keys = match_trained(networks, table)
    rows, columns = order_names(table, "row"), order_names(table, "position")
    place = table["mask"].fillna("none")  # attention that reads no mask is shown under `none`
    masks, sentinels = simple_first(place), simple_first(table.sentinels)
    # Sentinels run across and masks down, since there are fewer sentinels and a page is narrower than it is long.
    side = (WIDTH - 1.5) / max(len(columns) * len(sentinels), 26)
    height = (side * len(rows) + 0.3) * len(masks) + 1.9
    figure, axes = canvas(len(masks), len(sentinels), WIDTH, height, sharex=True, sharey=True)
    for (mask, sentinel), panel in zip(product(masks, sentinels), (panel for row in axes for panel in row)):
        part = table[(place == mask) & (table.sentinels == sentinel)]
        draw_squares(panel, part, rows, columns, n)
        at = {square: (columns.index(square.position), rows.index(square.row)) for square in part.itertuples()}
        # Hatched: theory allows fewer rows than tokens.
        patches = [Rectangle(corner, 1, 1) for square, corner in at.items() if square.theory_rows < n]
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": "#ffffff", "linewidth": 0.6, "hatch": "/////"}
        panel.add_collection(PatchCollection(patches, **style))
        for square, (x, y) in at.items():
            draw_marks(panel, x, y, square, learned.get(square.Index))
        panel.set_title(panel_title(mask, sentinel), fontsize=7)
    draw_legend(figure, n, table, bool(learned))
    passed, seeds = zip(*(learned.get(index, (None, None)) for index in table.index))
    numbers = table.assign(**{"seeds that find the places": passed, "trained seeds": seeds})
    selected = (
        networks[networks.attention.map(lambda name: parts(name)[0]).isin(attentions)] if attentions else networks
    )
    missing = describe_missing(selected[selected.key.isin(keys)], ["architecture", "task"], whole=selected)
    return Picture(figure, caption(table, n, learned) + missing, numbers.drop(columns="row"))


def component_words(component: str) -> str:
    """Return a component's name in words, with its options."""
    name, options = parts(component)
    return " ".join(
        [
            word(name),
            *(key if value == "true" else f"{key} {value}" for key, value in options.items() if value != "false"),
        ]
    )


def order_names(table: DataFrame, column: str) -> list[str]:
    """Order names by how many rows can be distinguished with them, so that similar ones are adjacent."""
    mean = table.groupby(column).untrained_rows.mean().fillna(-1).sort_values(kind="stable")
    return [str(name) for name in mean.index]


def simple_first(values: Any) -> list[str]:
    return sorted(set(values), key=lambda name: (name != "none", str(name)))


def match_trained(table: DataFrame, shown: DataFrame) -> tuple[dict[Any, tuple[int, int]], set[str]]:
    """Match the rows of `shown` with trained networks of the same components.

    Return row of `shown` -> (seeds that pass at the longest trained length, seeds), and the keys of these networks.
    """
    done = table[(table.status == "done") & ~table.beyond.fillna(True).astype(bool)]
    components = {name: factorize(shown[name], use_na_sentinel=False) for name in MADE_OF}
    matched: dict[Any, tuple[int, int]] = {}
    keys: set[str] = set()
    for _, part in done.groupby(list(MADE_OF), dropna=False):
        at = part[part.length == part.length.max()]
        fits = np.ones(len(shown), dtype=bool)
        for name, (number, values) in components.items():
            fits &= np.array([is_same_component(at[name].iloc[0], value) for value in values])[number]
        keys |= set(at.key) if fits.any() else set()
        for index in shown.index[fits]:
            passed, seeds = matched.get(index, (0, 0))
            matched[index] = passed + int(at.passes.sum()), seeds + len(at)
    return matched, keys


def is_same_component(cell: Any, asked: Any) -> bool:
    """Check whether a cell's component is that of the matrix, which names only the options that it changes. Null matches only null."""
    texts = isinstance(cell, str), isinstance(asked, str)
    return matches_in_table(cell, asked) if all(texts) else not any(texts)


def draw_squares(panel: Axes, part: DataFrame, rows: list[str], columns: list[str], n: int) -> None:
    """Draw a square per kind of attention.

    Its colour shows how many rows are distinct at random weights. The number is written where it is neither all nor one.
    """
    shades = [ALL, SOME, ONE, UNKNOWN]
    shown = part.assign(shade=[shades.index(square_colour(rows, n)) for rows in part.untrained_rows])
    grid = shown.pivot_table(index="row", columns="position", values="shade").reindex(index=rows, columns=columns)
    sns.heatmap(
        grid, ax=panel, mask=grid.isna(), cmap=ListedColormap(shades), vmin=-0.5, vmax=3.5, cbar=False, linewidths=0.6, linecolor="white",
        xticklabels=False, yticklabels=False,
    )  # fmt: skip
    for square in shown[shown.shade == shades.index(SOME)].itertuples():
        place = columns.index(square.position) + 0.5, rows.index(square.row) + 0.5
        panel.text(
            *place, str(int(square.untrained_rows)), ha="center", va="center", fontsize=5, color="#10304a", clip_on=True
        )
    panel.set(xlabel="", ylabel="")
    panel.set_xticks([place + 0.5 for place in range(len(columns))], [component_words(name) for name in columns],
                     rotation=60, ha="right", rotation_mode="anchor", fontsize=7)  # fmt: skip
    panel.set_yticks([place + 0.5 for place in range(len(rows))], rows, fontsize=7)
    panel.grid(visible=False)
    panel.tick_params(length=0)


def draw_marks(panel: Axes, x: int, y: int, square: Any, passed: tuple[int, int] | None) -> None:
    """Frame a square where measurement differs from theory, and draw a dot where networks were trained."""
    if square.agreement in DIFFER:
        panel.add_patch(Rectangle((x + 0.1, y + 0.1), 0.8, 0.8, fill=False, edgecolor=APART, linewidth=1.2))
    if passed is not None:
        share = passed[0] / passed[1]
        fill = "#111111" if share == 1 else "#ffffff" if share == 0 else "#888888"
        panel.plot(
            x + 0.5, y + 0.5, "o", markersize=4, markerfacecolor=fill, markeredgecolor="#111111", markeredgewidth=0.7
        )


def square_colour(rows: float, n: int) -> str:
    if rows != rows:
        return UNKNOWN
    return ALL if rows == n else ONE if rows == 1 else SOME


def panel_title(mask: str, sentinels: str) -> str:
    words = [
        f"{component_words(part)}{suffix}" for part, suffix in ((mask, " mask"), (sentinels, "")) if part != "none"
    ]
    return ", ".join(words) or "no mask, no special token"


def draw_legend(figure: Figure, n: int, table: DataFrame, learned: bool) -> None:
    entries: list[Any] = [
        Patch(color=ALL, label=f"all {n} rows distinct at random weights"),
        Patch(color=SOME, label="as many distinct rows as written"),
        Patch(color=ONE, label="all rows equal"),
        Patch(facecolor="#ffffff", edgecolor="#555555", hatch="/////", label=f"theory: fewer than {n} for all weights"),
    ]
    if table.untrained_rows.isna().any():
        entries.append(Patch(color=UNKNOWN, label="no such network"))
    if table.agreement.isin(DIFFER).any():
        entries.append(Patch(fill=False, edgecolor=APART, label="theory and random weights differ"))
    for fill, text in (("#111111", "all"), ("#888888", "some"), ("#ffffff", "no")) if learned else ():
        style: dict[str, Any] = {"markerfacecolor": fill, "markeredgecolor": "#111111", "markersize": 5}
        meaning = f"trained: {text} seeds find the places"
        entries.append(Line2D([], [], linestyle="", marker="o", label=meaning, **style))
    figure.legend(handles=entries, loc="outside lower center", ncols=2, title=DIRECTION)


def caption(table: DataFrame, n: int, learned: dict[Any, tuple[int, int]]) -> str:
    """Write the caption, with counts."""
    measured = table[table.untrained_rows.notna()]
    whole, none = int((measured.untrained_rows == n).sum()), int((measured.untrained_rows == 1).sum())
    agree, differ = int((measured.agreement == "agree").sum()), int(measured.agreement.isin(DIFFER).sum())
    undecided = len(measured) - agree - differ
    fewer, more = (int((measured.agreement == outcome).sum()) for outcome in DIFFER)
    differences = [f" In {fewer}, random weights tell fewer apart than theory allows."] * bool(fewer)
    differences += [f" In {more}, they tell more apart than theory allows, which contradicts it."] * bool(more)
    differences += [f" In {undecided}, theory is undecided."] * bool(undecided)
    text = (
        f"Which attention tells places apart ({DIRECTION}). Given {n} equal tokens in {many(int(table.depth.iloc[0]), 'layer')}, "
        f"{whole} of {many(len(measured), 'kind')} of attention tell all places apart, {none} none, {len(measured) - whole - none} some. "
        f"Theory and random weights agree in {agree}.{''.join(differences)}"
    )
    return text + (f" Trained networks: {say_trained(table, n, learned)}." if learned else "")


def say_trained(table: DataFrame, n: int, learned: dict[Any, tuple[int, int]]) -> str:
    """Write how many networks identify the positions, grouped by what theory says of their kind."""
    words = {True: "where theory allows it", False: "where it does not", None: "where theory is undecided"}
    by_theory: dict[bool | None, list[int]] = {}
    for index, pair in learned.items():
        rows = table.theory_rows.get(index)
        counts = by_theory.setdefault(None if rows != rows else rows == n, [0, 0])
        counts[0], counts[1] = counts[0] + pair[0], counts[1] + pair[1]
    known = [(by_theory[allowed], text) for allowed, text in words.items() if allowed in by_theory]
    return join(f"{counts[0]} of {many(counts[1], 'network')} find the places {text}" for counts, text in known)
