"""Declare the table `orders` and what is shown of it: the rate at which architectures lose rank."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rankfall import components
from rankfall.annotations import Series
from rankfall.rank.orders.theory import BARE, BLOCKS
from rankfall.report.headlines import Headline, OfParts, PartNumber
from rankfall.report.labels import many
from rankfall.report.page.chart import COMPONENTS, Chart
from rankfall.report.page.question import Read, TableQuestion
from rankfall.report.part_numbers import MADE_OF, notation, parts_of
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import select


def columns() -> Table:
    return declare_table(
        "orders",
        "each block, attention, normaliser, position, mask, kind of sentinels, number of heads, choice of biases and quantity",
        """
        block text: what surrounds the attention: nothing (attention alone), norms, skip, MLP
        attention text: how tokens are mixed
        normaliser text?: what turns scores into attention weights; null: nothing reads it
        position text: how places enter the scores
        mask text?: which pairs of places may attend; null: nothing reads it
        sentinels text: extra tokens that carry no input; only the other tokens are measured
        heads int?: attention heads; null: nothing reads it
        biases bool: whether the linear maps have biases
        quantity text: res: |R|/|X|, Frobenius, R about the token mean; sigma_ratio: sigma_2/sigma_1
        order float?: p in out ~ C in^p for nearly identical rows, mean over draws; null where undefined (see reason)
        uncertainty float?: spread of p over draws and standard error of the fits, added in squares
        log10_constant float?: log10 C, median over draws
        decades float? [decades]: range of the residual that the fit spans
        draws int: random draws of weights, common row and direction
        identical_draws int: draws whose output rows are identical to the last digit: not fitted
        method text: centred: centred propagation, scales 1e-8 to 1e-40; float64: ordinary outputs; none: it failed (see reason)
        theory float?: order expected of res; null for sigma_ratio
        theory_reason text?: why that is expected
        reason text: why the order is undefined, or what an order of zero means; empty otherwise
        """,
        key="block attention normaliser position mask sentinels heads biases quantity",
        cells=False,
    )


NEAR = 0.1  # orders that differ by less count as equal
ORDER = {"quantity": "res", "biases": True}
OF_ATTENTION = {**ORDER, "block": BARE}
PLAIN = {"position": "none", "mask": "none", "sentinels": "none"}  # no position, mask or sentinel
NAMES = {parts: name for name, parts in BLOCKS.items()}


def attention_parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components of the attention alone. A position that acts on the states is not part of it."""
    about = parts_of(row) | {"block": BARE}
    touches = components.facts_of("position", row["position"].partition("(")[0]).get("TOUCHES", ())
    return about | {"position": "none"} if tuple(touches) == ("states",) else about


def block_parts(row: Mapping[str, Any]) -> dict[str, Any] | str:
    about, block = attention_parts(row), block_name(row)
    if not block:
        return "no block of the table orders is made of these parts"
    if block != BARE and about["sentinels"] not in ("none", None):
        return "blocks are measured without special tokens"
    if (
        block != BARE
        and row["residual"] == "none"
        and any(about[part] not in ("none", None) for part in ("position", "mask"))
    ):
        return "blocks without skip connections are measured without position and mask"
    return about | {"block": block}


def block_name(row: Mapping[str, Any]) -> str | None:
    """Return the name in the table `orders` of the parts around the attention, or None if the table has no such block."""
    names = {part: str(row[part]).partition("(")[0] for part in ("residual", "norm", "mlp")}
    alike = names["mlp"] == "none" or row["mlp_residual"] == row["residual"]
    # Orders are measured with default options.
    default = all(notation(part, row[part]) == notation(part, name) for part, name in names.items())
    if row["block"] != "attention" or not alike or not default:
        return None
    placement = "" if names["norm"] == "none" else row["norm_placement"]
    return NAMES.get((names["residual"], names["norm"], placement, names["mlp"]))


def order(row: Series) -> PartNumber:
    return PartNumber(row.order, f"{row.block}, {row.draws} draws", row.uncertainty)


HEADLINES = (
    Headline(
        "order",
        "order of its attention",
        "p in out ~ C in^p for nearly identical tokens, of the attention layer by itself: 3 collapses doubly exponentially with depth, "
        "1 exponentially, 0 not at all; deviation: uncertainty of the fit",
        ("order", "uncertainty"),
        partial(select, where=ORDER),
        order,
        good="low",
        least=NEAR,
        parts=OfParts(attention_parts, "heads"),
        place=10,
    ),
    Headline(
        "block_order",
        "order of its block",
        "the same of the whole block, with its skip connection, norm, MLP, mask and relative position, but without special tokens",
        ("order", "uncertainty"),
        partial(select, where=ORDER),
        order,
        good="low",
        least=NEAR,
        parts=OfParts(block_parts, "heads"),
        place=11,
    ),
)


CHARTS = (
    Chart(
        "orders",
        "Order of contraction of every kind of attention",
        "By what turns scores into weights (rows) and how places enter the scores (columns), without skip connections and MLPs. 3: "
        "residuals are cubed in every layer, so rank is lost doubly exponentially; 1: they shrink by a factor; 0: they do not vanish.",
        **COMPONENTS,
        choose=("attention", "mask", "sentinels", "heads"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        where=OF_ATTENTION,
        value="order",
        value_title="order",
        within=(0.0, 3.0),
        better="low",
        place=30,
    ),
)


def say_orders(read: Read) -> tuple[str, str]:
    table = read("orders")
    if table is None:
        return "", ""
    rows = select(table, OF_ATTENTION)
    orders = rows.groupby(list(MADE_OF), dropna=False).order.max()
    if not orders.notna().any():
        return "", ""
    cubed, shrunk, kept = (int(((orders - order).abs() < NEAR).sum()) for order in (3, 1, 0))
    others = len(orders) - cubed - shrunk - kept
    return (
        f"Of {many(len(orders), 'kind')} of attention layer, {cubed} cube the residual in every layer, {shrunk} shrink it by a factor, "
        f"{kept} keep it from vanishing" + f"; {others} have another order or none" * (others > 0) + ".",
        "",
    )


SENTENCES = (TableQuestion("Which attention loses rank, and how fast?", say_orders, place=50),)
