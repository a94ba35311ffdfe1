"""The table of orders as a picture: which architectures lose rank doubly exponentially (3), exponentially (1), or not at all (0)."""

from typing import Literal

import numpy as np
import seaborn as sns
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from pandas import concat

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.rank.orders.shown import BARE, NEAR, PLAIN
from rankfall.report.colours import DIRECTION, KEEPS, LOSES, LOSES_FASTER, LOSES_FASTEST, UNKNOWN
from rankfall.report.looks import label
from rankfall.report.selection import select
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["orders"]

# Blue means that rank is kept and orange that it is lost, darker if faster. Lightness differs too, for print and colour-blind readers.
FAST, MIDDLE, SLOW, NEVER = LOSES_FASTEST, LOSES_FASTER, LOSES, KEEPS
NAMES = {
    "softmax": "softmax",
    "l2": "l2 of exp",
    "swish_l2": "swish, l2",
    "exp": "exp, no denominator",
    "sigmoid": "sigmoid",
    "relu2": "relu²",
    "softmax_off_by_one": "softmax off by one",
    "urpe": "URPE",
    "none": "none",
    "toeplitz": "Toeplitz",
    "symmetric": "symmetric",
    "rope": "RoPE",
    "causal": "causal",
    "bos": "BOS",
    "log_n": "softmax, log n",
    "cosine": "cosine",
    "key_normalised": "keys normalised",
    "relu2_sum": "relu² over sum",
    "zero_sum": "softmax less its mean",
    "alibi": "ALiBi",
    "t5": "T5",
    "transformer_xl": "Transformer-XL",
    "deberta": "DeBERTa",
    "fire": "FIRE",
    "shaw": "Shaw",
    "shaw_keys": "Shaw, keys only",
    "learned": "learned",
    "sinusoidal": "sinusoidal",
    "local": "local",
    "dilated": "dilated",
    "cls_sep": "CLS and SEP",
}
ATTENTIONS = {"gau": "gated unit", "linear": "linear attention"}


def orders(
    read: Read,
    *,
    quantity: Literal["res", "sigma_ratio"] = "res",
    heads: int | None = None,
    biases: bool = True,
) -> Picture:
    """Draw the orders as two matrices.

    `quantity`: res or sigma_ratio; `heads`: number of attention heads, by default the largest measured; `biases`: with or without.
    """
    everything = read("orders")
    there = sorted({int(count) for count in everything.heads.dropna()})
    if not len(everything) or (heads is not None and heads not in there):
        raise RankfallError(
            f"figure orders: no entry has {heads or 'any'} heads; there is: {', '.join(map(str, there)) or 'nothing'}"
        )
    heads = heads or (there[-1] if there else 1)
    # Attention that reads no mask is drawn under `none`; the picture's numbers keep the null.
    masks = everything["mask"]
    everything = everything.assign(normaliser=name_rows(everything), mask=masks.fillna("none"))
    table = everything[(everything.quantity == quantity) & ((everything.heads == heads) | everything.heads.isna())]
    grid = select(table, {"block": BARE, "biases": biases})
    plain = select(table, PLAIN | {"biases": True})
    around = plain[plain.block != BARE]
    present = {str(name) for name in grid.normaliser}
    rows = [name for name in NAMES if name in present] + sorted(present - set(NAMES), key=row_order)
    columns = sorted({(str(r.sentinels), str(r.mask), str(r.position)) for r in entries(grid)}, key=column_order)
    blocks = [name for name in block_order(select(everything, PLAIN)) if name in set(around.block)]
    wide = [max(9, len(columns)), max(8, len(blocks))]  # room for titles and legend where there are few
    side = (WIDTH - 1.7) / sum(wide)  # side of a square, in inches
    figure, axes = canvas(1, 2, WIDTH, side * len(rows) + 2.2, gridspec_kw={"width_ratios": wide}, sharey=True)
    left, right = axes[0]
    names = [word(column[2]) for column in columns]
    squares(
        left,
        rows,
        names,
        wide[0],
        {(r.normaliser, columns.index((r.sentinels, r.mask, r.position))): r.order for r in entries(grid)},
    )
    squares(right, rows, blocks, wide[1], {(r.normaliser, blocks.index(r.block)): r.order for r in entries(around)})
    groups(left, columns)
    right.set_title("what surrounds the attention", loc="center", pad=26)
    left.set_title("attention alone: position, mask, special token", loc="center", pad=26)
    key(figure, quantity, {look(order)[0] for order in (*grid.order, *around.order)})
    shown = concat([grid, around])
    kept = ["block", "attention", "normaliser", "position", "mask", "sentinels", "heads", "biases", "order", "uncertainty", "theory",
            "decades", "method", "reason"]  # fmt: skip
    text = caption(grid, shown, quantity, heads)
    return Picture(figure, text, shown.assign(mask=masks[shown.index])[kept])


def word(name: str) -> str:
    """Return a component's name in words: its label in the configuration, or the default."""
    return NAMES.get(name, name) if label(name) == name else label(name)


def row_words(name: str) -> str:
    """Return a row's name in words."""
    attention, _, normaliser = name.partition(" ")
    if attention in NAMES or not normaliser:
        return (
            word(attention)
            if label(attention) != attention
            else NAMES.get(attention, ATTENTIONS.get(attention, attention))
        )
    first = label(attention) if label(attention) != attention else ATTENTIONS.get(attention, attention)
    return f"{first}, {word(normaliser)}"


def name_rows(table: DataFrame) -> list[str]:
    """Return the name of each row of the picture: the normaliser, after the attention unless it is multi-head."""
    names = []
    for attention, normaliser in zip(table.attention, table.normaliser):
        words = [
            *([] if attention == "multihead" else [parts(attention)[0]]),
            *([normaliser] if isinstance(normaliser, str) else []),
        ]
        names.append(" ".join(words))
    return names


def entries(table: DataFrame) -> list:  # type: ignore[type-arg]
    return list(table.itertuples(index=False))


def row_order(name: str) -> tuple[str, int]:
    """Return a sort key: normalisers of one attention in the order of `NAMES`."""
    attention, _, normaliser = name.partition(" ")
    return attention, list(NAMES).index(normaliser) if normaliser in NAMES else len(NAMES)


def column_order(column: tuple[str, str, str]) -> tuple[int, int, int]:
    sentinels, mask, position = column
    names = list(NAMES)
    return (sentinels != "none", mask != "none", names.index(position) if position in names else len(names))


def block_order(table: DataFrame) -> list[str]:
    """Order blocks by how fast the residual decays, the same in the pictures of both quantities."""
    fastest = table[table.quantity == "res"].groupby("block", sort=False).order.max().round()
    return [str(name) for name in fastest.sort_values(ascending=False, kind="stable").index]


def squares(
    panel: Axes, rows: list[str], names: list[str], columns: int, orders: "dict[tuple[str, int], float]"
) -> None:
    """Draw one square per entry, with its number."""
    shades = [FAST, MIDDLE, SLOW, NEVER, UNKNOWN]
    numbers, words = np.full((len(rows), columns), np.nan), np.full((len(rows), columns), "", dtype=object)
    for (name, x), order in orders.items():
        colour, _, words[rows.index(name), x] = look(order)
        numbers[rows.index(name), x] = shades.index(colour)
    sns.heatmap(
        numbers, ax=panel, mask=np.isnan(numbers), cmap=ListedColormap(shades), vmin=-0.5, vmax=4.5, cbar=False,
        linewidths=1, linecolor="white",
        annot=words, fmt="", annot_kws={"fontsize": 7.5, "fontweight": "bold"}, xticklabels=False,
    )  # fmt: skip
    panel.set_xticks(
        [place + 0.5 for place in range(len(names))], names, rotation=55, ha="right", rotation_mode="anchor"
    )
    panel.set_yticks([place + 0.5 for place in range(len(rows))], [row_words(name) for name in rows], rotation=0)
    panel.grid(visible=False)
    panel.tick_params(length=0)


def look(order: float) -> tuple[str, str, str]:
    """Return the colour, ink and text of an entry."""
    if order != order:
        return UNKNOWN, "#777777", "–"
    number = f"{order:.0f}" if abs(order - round(order)) < 0.05 else f"{order:.1f}"
    if order > 1.5:
        return FAST if order > 2.5 else MIDDLE, "white", number
    return (SLOW, "#4a3000", number) if order > 0.5 else (NEVER, "white", "0" if number == "-0" else number)


def groups(panel: Axes, columns: list[tuple[str, str, str]]) -> None:
    """Draw brackets over the columns that share a mask and a sentinel."""
    shared = [column[:2] for column in columns]
    for group in dict.fromkeys(shared):
        places = [i for i, each in enumerate(shared) if each == group]
        text = " + ".join(word(part) for part in reversed(group) if part != "none") or "no mask, no token"
        text = text if len(places) > 2 else text.replace(", ", ",\n").replace(" + ", "\n+ ")
        panel.plot([places[0] + 0.08, places[-1] + 0.92], [-0.2, -0.2], color="#555555", linewidth=1, clip_on=False)
        panel.text(
            (places[0] + places[-1]) / 2 + 0.5, -0.35, text, ha="center", va="bottom", fontsize=7, color="#333333"
        )


def key(figure: object, quantity: str, colours: set[str]) -> None:
    """Draw the legend of the colours that occur."""
    what = "residual" if quantity == "res" else "σ₂/σ₁"
    meanings = {
        FAST: f"3: {what} cubed by every layer, doubly exponential collapse",
        MIDDLE: "2: squared, doubly exponential too",
        SLOW: "1: a constant factor, exponential",
        NEVER: "0: rows never become equal" if quantity == "res" else "0: never close to rank one",
        UNKNOWN: "–: no order",
    }
    figure.legend(  # type: ignore[attr-defined]
        handles=[Patch(color=colour, label=text) for colour, text in meanings.items() if colour in colours],
        loc="outside lower center",
        ncols=min(2, len(colours)),
        title=DIRECTION,
    )


def caption(grid: DataFrame, both: DataFrame, quantity: str, heads: int) -> str:
    """Write the caption, with counts and agreement with theory."""
    near = grid.order.round()
    cubic = [row_words(name) for name in sorted(set(grid[near == 3].normaliser))]
    counts = [int((near == p).sum()) for p in (3, 1, 0)]
    others = int(grid.order.notna().sum()) - sum(counts)
    missing = int(both.order.isna().sum())
    none = "1 entry (–) has" if missing == 1 else f"{missing} entries (–) have"
    return (
        f"Order of contraction p ({DIRECTION}) of {'the residual' if quantity == 'res' else 'σ₂/σ₁'} for nearly identical rows "
        f"({heads} head{'s' * (heads > 1)}): out ~ C in^p{say_theory(both)}. Of {len(grid)} attention layers "
        f"{counts[0]} are cubic "
        f"({'; '.join(cubic) or 'none'}), {counts[1]} are of first order and {counts[2]} of order 0"
        + (f", {others} of another" if others else "")
        + (f"; {none} no order, for reasons that the table says." if missing else ".")
    )


def say_theory(shown: DataFrame) -> str:
    """Write the distance of measured orders from theory, and the components for which it is more than rounding."""
    stated = shown[shown.theory.notna() & shown.order.notna()]
    if not len(stated):
        return ""
    distance = (stated.order - stated.theory).abs()
    apart = stated[distance > NEAR]
    if not len(apart):
        return f" (the largest distance from theory, over {len(stated)} entries, is {distance.max():.0e})"
    first = apart.loc[distance[apart.index].idxmax()]
    names = "; ".join(row_words(name) for name in sorted(set(apart.normaliser)))
    one = len(apart) == 1
    return (
        f" ({len(apart)} of {len(stated)} entries {'is' if one else 'are'} not what theory expects by the facts that components declare, "
        f"of {names}: the farthest, {row_words(first.normaliser)}, is {look(first.order)[2]} instead of {first.theory:.0f}, "
        f'expected because "{first.theory_reason}")'
    )
