"""The order table as a picture: which architectures lose rank doubly exponentially (3), exponentially (1), or not at all (0)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.report.style import Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["orders"]

# Dark means fast, warm not at all; lightness differs too, for print and colour-blind readers.
FAST, MIDDLE, SLOW, NEVER, UNKNOWN = "#08457e", "#3d85c0", "#9fd0f0", "#f0a202", "#eeeeee"
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
BARE = "attention alone"


def orders(
    read: "Callable[[str], DataFrame]",
    *,
    quantity: Literal["res", "sigma_ratio"] = "res",
    heads: int | None = None,
    biases: bool = True,
) -> Picture:
    """`quantity`: res or sigma_ratio, for attention of so many heads (the most that was measured, unless given), with or without biases."""
    everything = read("orders")
    there = sorted({int(count) for count in everything.heads.dropna()})
    if not len(everything) or (heads is not None and heads not in there):
        raise RankfallError(
            f"figure orders: no entry has {heads or 'any'} heads; there is: {', '.join(map(str, there)) or 'nothing'}"
        )
    heads = heads or (there[-1] if there else 1)
    everything = everything.assign(normaliser=named(everything))
    table = everything[(everything.quantity == quantity) & ((everything.heads == heads) | everything.heads.isna())]
    grid = table[(table.block == BARE) & (table.biases == biases)]
    plain = (table.position == "none") & (table["mask"] == "none") & (table.sentinels == "none") & table.biases
    around = table[plain & (table.block != BARE)]
    present = {str(name) for name in grid.normaliser}
    rows = [name for name in NAMES if name in present] + sorted(present - set(NAMES), key=row_order)
    columns = sorted({(str(r.sentinels), str(r.mask), str(r.position)) for r in entries(grid)}, key=column_order)
    blocks = [name for name in block_order(everything) if name in set(around.block)]
    wide = [max(9, len(columns)), max(8, len(blocks))]  # room for titles and legend where there are few
    figure, axes = canvas(
        1, 2, 0.42 * sum(wide) + 2.6, 0.4 * len(rows) + 2.3, gridspec_kw={"width_ratios": wide}, sharey=True
    )
    left, right = axes[0]
    cells(
        left,
        rows,
        wide[0],
        {(r.normaliser, columns.index((r.sentinels, r.mask, r.position))): r.order for r in entries(grid)},
    )
    cells(right, rows, wide[1], {(r.normaliser, blocks.index(r.block)): r.order for r in entries(around)})
    left.set_yticks(range(len(rows)), [called(name) for name in rows])
    left.set_xticks(
        range(len(columns)), [NAMES.get(column[2], column[2]) for column in columns], rotation=55, ha="right"
    )
    right.set_xticks(range(len(blocks)), blocks, rotation=55, ha="right")
    groups(left, columns)
    right.set_title("what surrounds the attention", loc="center", pad=28)
    left.set_title("attention alone: position, mask, special token", loc="center", pad=28)
    key(figure, quantity, {look(order)[0] for order in (*grid.order, *around.order)})
    others = [str(count) for count in there if count != heads]
    aside = f" In the table but not shown: {', '.join(others)} heads." if others else ""
    return Picture(figure, caption(grid, around, quantity, heads) + aside)


def called(name: str) -> str:
    """A row's name as words."""
    attention, _, normaliser = name.partition(" ")
    if attention in NAMES:
        return NAMES[attention]
    return f"{ATTENTIONS.get(attention, attention)}{', ' if normaliser else ''}{NAMES.get(normaliser, normaliser)}"


def named(table: "DataFrame") -> list[str]:
    """What a row of the picture is called: the normaliser, behind the attention where that is another than multi-head."""
    names = []
    for attention, normaliser in zip(table.attention, table.normaliser):
        words = [
            *([] if attention == "multihead" else [parts(attention)[0]]),
            *([normaliser] if isinstance(normaliser, str) else []),
        ]
        names.append(" ".join(words))
    return names


def entries(table: "DataFrame") -> list:  # type: ignore[type-arg]
    return list(table.itertuples(index=False))


def row_order(name: str) -> tuple[str, int]:
    """Normalisers of one attention in the order of `NAMES`."""
    attention, _, normaliser = name.partition(" ")
    return attention, list(NAMES).index(normaliser) if normaliser in NAMES else len(NAMES)


def column_order(column: tuple[str, str, str]) -> tuple[int, int, int]:
    sentinels, mask, position = column
    names = list(NAMES)
    return (sentinels != "none", mask != "none", names.index(position) if position in names else len(names))


def block_order(table: "DataFrame") -> list[str]:
    """By how fast the residual decays, the same in the pictures of both quantities."""
    fastest = table[table.quantity == "res"].groupby("block", sort=False).order.max().round()
    return [str(name) for name in fastest.sort_values(ascending=False, kind="stable").index]


def cells(panel: "Axes", rows: list[str], columns: int, orders: "dict[tuple[str, int], float]") -> None:
    """One square per entry, with its number."""
    from matplotlib.patches import Rectangle

    for (name, x), order in orders.items():
        y = rows.index(name)
        colour, ink, text = look(order)
        panel.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, color=colour, linewidth=0))
        panel.text(x, y, text, ha="center", va="center", color=ink, fontsize=10, fontweight="bold")
    panel.set_xlim(-0.6, max(columns, 1) - 0.4)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.grid(False)
    panel.tick_params(length=0)
    for side in panel.spines.values():
        side.set_visible(False)


def look(order: float) -> tuple[str, str, str]:
    """Colour, ink and text of an entry."""
    if order != order:
        return UNKNOWN, "#777777", "–"
    number = f"{order:.0f}" if abs(order - round(order)) < 0.05 else f"{order:.1f}"
    if order > 1.5:
        return FAST if order > 2.5 else MIDDLE, "white", number
    return (SLOW, "#10304a", number) if order > 0.5 else (NEVER, "#4a3000", "0" if number == "-0" else number)


def groups(panel: "Axes", columns: list[tuple[str, str, str]]) -> None:
    """Brackets over the columns that share a mask and a sentinel."""
    shared = [column[:2] for column in columns]
    for group in dict.fromkeys(shared):
        places = [i for i, each in enumerate(shared) if each == group]
        text = " + ".join(NAMES.get(part, part) for part in reversed(group) if part != "none") or "no mask, no token"
        text = text if len(places) > 2 else text.replace(", ", ",\n").replace(" + ", "\n+ ")
        panel.plot([places[0] - 0.42, places[-1] + 0.42], [-0.72, -0.72], color="#555555", linewidth=1, clip_on=False)
        panel.text((places[0] + places[-1]) / 2, -0.88, text, ha="center", va="bottom", fontsize=8.5, color="#333333")


def key(figure: object, quantity: str, colours: set[str]) -> None:
    """What the colours mean, of those that occur."""
    from matplotlib.patches import Patch

    what = "residual" if quantity == "res" else "σ₂/σ₁"
    meanings = {
        FAST: f"3: {what} cubed by every layer, doubly exponential collapse",
        MIDDLE: "2: squared, doubly exponential too",
        SLOW: "1: a constant factor, exponential",
        NEVER: "0: rows never become equal" if quantity == "res" else "0: never close to rank one",
        UNKNOWN: "–: no order, see below",
    }
    figure.legend(  # type: ignore[attr-defined]
        handles=[Patch(color=colour, label=text) for colour, text in meanings.items() if colour in colours],
        loc="outside lower center",
        ncols=min(3, len(colours)),
        fontsize=9,
    )


def caption(grid: "DataFrame", around: "DataFrame", quantity: str, heads: int) -> str:
    """What was found, with counts, uncertainty and agreement with theory."""
    cubic = sorted(set(grid[grid.order > 1.5].normaliser))
    counts = [int((grid.order.round() == p).sum()) for p in (3, 1, 0)]
    from pandas import concat

    both = concat([grid, around])
    sharp = both.uncertainty[both.order.notna()].max()
    uncertainty = f"; largest uncertainty {sharp:.0e}" if sharp == sharp else ""
    text = (
        f"Order of contraction p of {'the residual' if quantity == 'res' else 'σ₂/σ₁'} for nearly identical rows "
        f"({heads} head{'s' * (heads > 1)}): out ~ C in^p. Of {len(grid)} attention layers {counts[0]} are cubic "
        f"({', '.join(cubic) or 'none'}), {counts[1]} are of first order and {counts[2]} of order 0. "
        f"{fitted(both[both.order.notna()])}{uncertainty}. "
    )
    stated = both[both.theory.notna()]
    if len(stated):
        apart = (stated.order - stated.theory).abs().max()
        text += f"Largest distance from the order that theory gives, over {len(stated)} entries: {apart:.0e}. "
    return text + undefined(both[both.order.isna()])


def undefined(table: "DataFrame") -> str:
    """Why entries have no order, and their normalisers."""
    if table.empty:
        return ""
    why = table.assign(
        why=table.reason.str.replace(r"^depends on the draw.*", "depends on the draw of weights", regex=True)
    )
    said = [f"{len(part)} {reason} ({', '.join(sorted(set(part.normaliser)))})" for reason, part in why.groupby("why")]
    return f"{len(table)} entries (–) have no order: {'; '.join(said)}."


def fitted(table: "DataFrame") -> str:
    """The number of decades, and the arithmetic."""
    low, high = table.decades.min(), table.decades.max()
    if table.empty:
        return "No entry has an order"
    plain = table[table.method != "centred"]
    return f"Fitted over {low:.3g} {f'to {high:.3g} ' if high > low else ''}decades by centred propagation" + (
        f" ({len(plain)} entries from plain float64, of {', '.join(sorted(set(plain.normaliser)))})"
        if len(plain)
        else ""
    )
