"""The table of orders as a picture: which architectures lose rank doubly exponentially (3), exponentially (1), or not at all (0)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import seaborn as sns
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from pandas import concat

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.rank.orders.shown import NEAR, PLAIN
from rankfall.rank.orders.theory import BARE
from rankfall.report.colours import DIRECTION, KEEPS, LOSES, LOSES_FASTER, LOSES_FASTEST, UNKNOWN
from rankfall.report.labels import labels, many
from rankfall.report.looks import label
from rankfall.report.selection import select
from rankfall.report.style import WIDTH, Picture, canvas

# Blue means that rank is kept and orange that it is lost, darker if faster. Lightness differs too, for print and colour-blind readers.
SHADES = [LOSES_FASTEST, LOSES_FASTER, LOSES, KEEPS, UNKNOWN]
MEANINGS = (
    "3: {what} cubed by every layer, doubly exponential collapse",
    "2: squared, doubly exponential too",
    "1: a constant factor, exponential",
    "0: {never}",
    "–: no order",
)
NEVER = {"res": "rows never become equal", "sigma_ratio": "never close to rank one"}
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
    "gau": "gated unit",
    "linear": "linear attention",
}


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
    counts = sorted({int(count) for count in everything.heads.dropna()})
    if not len(everything) or (heads is not None and heads not in counts):
        available = ", ".join(map(str, counts)) or "nothing"
        raise RankfallError(f"figure orders: no entry has {heads or 'any'} heads; there is: {available}")
    heads = heads or (counts[-1] if counts else 1)
    # Attention that reads no mask is drawn under `none`; the picture's numbers keep the null.
    masks = everything["mask"]
    everything = everything.assign(row=name_rows(everything), mask=masks.fillna("none"))
    table = everything[(everything.quantity == quantity) & ((everything.heads == heads) | everything.heads.isna())]
    alone = select(table, {"block": BARE, "biases": biases})
    plain = select(table, PLAIN | {"biases": True})
    around = plain[plain.block != BARE]
    kinds = (
        alone[["row", "attention", "normaliser"]].fillna("").drop_duplicates("row").itertuples(index=False, name=None)
    )
    # Multi-head attention first, then by attention, with normalisers in the order of `NAMES`.
    rows = [
        row
        for row, *_ in sorted(kinds, key=lambda kind: (kind[1] != "multihead", kind[1], order_names(kind[2]), kind[2]))
    ]
    places = sorted(
        alone[["sentinels", "mask", "position"]].drop_duplicates().itertuples(index=False, name=None),
        key=lambda place: (place[0] != "none", place[1] != "none", order_names(place[2])),
    )
    # Blocks are ordered by how fast the residual decays, the same in the pictures of both quantities.
    fastest = select(everything, PLAIN | {"quantity": "res"}).groupby("block", sort=False).order.max().round()
    blocks = [name for name in fastest.sort_values(ascending=False, kind="stable").index if name in set(around.block)]
    wide = [max(9, len(places)), max(8, len(blocks))]  # room for titles and legend where there are few
    side = (WIDTH - 1.7) / sum(wide)  # side of a square, in inches
    figure, axes = canvas(1, 2, WIDTH, side * len(rows) + 2.2, gridspec_kw={"width_ratios": wide}, sharey=True)
    left, right = axes[0]
    placed = zip(alone.row, zip(alone.sentinels, alone["mask"], alone.position))
    draw_squares(left, dict(zip(placed, alone.order)), rows, places, wide[0])
    draw_squares(right, dict(zip(zip(around.row, around.block), around.order)), rows, blocks, wide[1])
    left.set_xticklabels([word(position) for *_, position in places])
    draw_groups(left, places)
    left.set_title("attention alone: position, mask, special token", loc="center", pad=26)
    right.set_title("what surrounds the attention", loc="center", pad=26)
    shown = concat([alone, around])
    words = {"what": "residual" if quantity == "res" else "σ₂/σ₁", "never": NEVER[quantity]}
    shades = sorted({shade(order) for order in shown.order})
    handles = [Patch(color=SHADES[index], label=MEANINGS[index].format(**words)) for index in shades]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(2, len(shades)), title=DIRECTION)
    kept = ["block", "attention", "normaliser", "position", "mask", "sentinels", "heads", "biases", "order", "uncertainty", "theory",
            "decades", "method", "reason"]  # fmt: skip
    return Picture(figure, caption(alone, shown, quantity, heads), shown.assign(mask=masks[shown.index])[kept])


def word(name: str) -> str:
    """Return a component's name in words: its label in the configuration, or the default."""
    return NAMES.get(name, name.replace("_", " ")) if label(name) == name else label(name)


def name_rows(table: DataFrame) -> list[str]:
    """Return the row of each entry: the normaliser, after the attention unless it is multi-head. Components of one name have the options in
    which they differ, unless the configuration labels them as a whole."""
    names = {"multihead": "", "": ""}
    columns = [table[kind].fillna("") for kind in ("attention", "normaliser")]
    for component, short in (pair for column in columns for pair in labels(column.unique()).items()):
        name = parts(component)[0]
        whole = label(component) if label(component) != component else short.replace(label(name), word(name), 1)
        names.setdefault(component, whole)
    return [", ".join(filter(None, (names[component] for component in pair))) for pair in zip(*columns)]


def order_names(name: str) -> int:
    return list(NAMES).index(name) if name in NAMES else len(NAMES)


def shade(order: float) -> int:
    """Return the index of an order among SHADES."""
    return 4 if order != order else 3 - int(np.digitize(order, [0.5, 1.5, 2.5]))


def write_order(order: float) -> str:
    if order != order:
        return "–"
    return f"{round(order, 0 if abs(order - round(order)) < 0.05 else 1) + 0.0:g}"


def draw_squares(
    panel: Axes, orders: Mapping[tuple[str, Any], float], rows: Sequence[str], columns: Sequence[Any], width: int
) -> None:
    """Draw one square per entry (row, column), with its order, in a panel of `width` columns."""
    shades, texts = np.full((len(rows), width), np.nan), np.full((len(rows), width), "", dtype=object)
    for (row, column), order in orders.items():
        place = rows.index(row), columns.index(column)
        shades[place], texts[place] = shade(order), write_order(order)
    sns.heatmap(
        shades, ax=panel, mask=np.isnan(shades), cmap=ListedColormap(SHADES), vmin=-0.5, vmax=4.5, cbar=False,
        linewidths=1, linecolor="white",
        annot=texts, fmt="", annot_kws={"fontsize": 7.5, "fontweight": "bold"},
    )  # fmt: skip
    at, names = np.arange(len(columns)) + 0.5, [str(column) for column in columns]
    panel.set_xticks(at, names, rotation=55, ha="right", rotation_mode="anchor")
    panel.set_yticks(np.arange(len(rows)) + 0.5, list(rows), rotation=0)
    panel.grid(visible=False)
    panel.tick_params(length=0)


def draw_groups(panel: Axes, columns: list[tuple[str, str, str]]) -> None:
    """Draw brackets over the columns that share a mask and a sentinel."""
    shared = [column[:2] for column in columns]
    for group in dict.fromkeys(shared):
        places = [i for i, pair in enumerate(shared) if pair == group]
        text = " + ".join(word(part) for part in reversed(group) if part != "none") or "neither"
        text = text if len(places) > 2 else text.replace(", ", ",\n").replace(" + ", "\n+ ")
        panel.plot([places[0] + 0.08, places[-1] + 0.92], [-0.2, -0.2], color="#555555", linewidth=1, clip_on=False)
        middle = (places[0] + places[-1]) / 2 + 0.5
        panel.text(middle, -0.35, text, ha="center", va="bottom", fontsize=7, color="#333333")


def caption(alone: DataFrame, shown: DataFrame, quantity: str, heads: int) -> str:
    """Write the caption: counts of attention layers by order, and how many entries theory does not expect."""
    rounded = alone.order.round()
    cubic = "; ".join(sorted(set(alone.row[rounded == 3]))) or "none"
    counts = {p: int((rounded == p).sum()) for p in (3, 1, 0)}
    others, missing = int(rounded.notna().sum()) - sum(counts.values()), int(shown.order.isna().sum())
    with_theory = shown.dropna(subset=["theory", "order"])
    differing = int(((with_theory.order - with_theory.theory).abs() > NEAR).sum())
    theory = (
        f" ({differing} of {len(with_theory)} entries differ from theory by more than {NEAR:g})"
        if len(with_theory)
        else ""
    )
    return (
        f"Order of contraction p ({DIRECTION}) of {'the residual' if quantity == 'res' else 'σ₂/σ₁'} for nearly identical rows "
        f"({many(heads, 'head')}): out ~ C in^p{theory}. Of {many(len(alone), 'attention layer')} {counts[3]} are cubic ({cubic}), "
        f"{counts[1]} of first order and {counts[0]} of order 0{f', {others} of another' if others else ''}."
        + (f" {many(missing, 'square')} (–) without an order: the table says why." if missing else "")
    )
