"""Order of contraction: p in res_out ~ C res_in^p for nearly identical rows, the rate at which an architecture loses rank with depth.

p > 1: rank is lost doubly exponentially in depth; p = 1: exponentially; p = 0: rows come out different however similar they are at the
input. It is measured for res (relative, Frobenius) and for sigma_2 / sigma_1, which stays zero when rows differ by a factor only.

Each entry is measured on one block with many random draws of weights, of the common row x and of the direction of R. p is the slope of
log against log, fitted for each draw (`slopes.py`). Its uncertainty combines the standard error of the fit and the spread over draws. An
architecture that cannot be built or measured has rows without an order, with the reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import torch

from rankfall import components
from rankfall.design import Architecture, Component, attention_alone, components_of
from rankfall.errors import RankfallError, describe_error
from rankfall.filters import matches
from rankfall.measure.context import Context
from rankfall.rank.centred.assumptions import Unknown
from rankfall.rank.orders.slopes import leave_order_empty, measure_slopes
from rankfall.rank.orders.theory import BARE, BLOCKS, expect_order

NEEDS = "nothing"
LIMITS = {"tokens": (2, None)}
PARTS = {
    "attentions": "attention",
    "normalisers": "normaliser",
    "positions": "position",
    "masks": "mask",
    "sentinels": "sentinels",
}

# A single layer of attention.
ALONE = attention_alone("alone", init=Component("published"), heads=2, width=8)


@dataclass(frozen=True)
class Composition:
    """One architecture of the table, with the name of its block."""

    design: Architecture
    block: str
    biases: bool


def orders(
    context: Context,
    *,
    attentions: list[str | dict] = ["multihead"],
    normalisers: list[str | dict] = [
        "softmax",
        "l2",
        "swish_l2",
        "exp",
        "sigmoid",
        "relu2",
        "softmax_off_by_one",
        "urpe",
    ],
    positions: list[str | dict] = ["none", "toeplitz", "symmetric", "rope"],
    masks: list[str | dict] = ["none", "causal"],
    sentinels: list[str | dict] = ["none", "bos"],
    blocks: list[
        Literal[
            "attention alone",
            "MLP",
            "post-norm",
            "pre-norm",
            "RMS norm",
            "column norm",
            "skip",
            "skip, post-norm",
            "skip, pre-norm",
            "transformer",
            "pre-norm transformer",
            "decoder",
        ]
    ] = [],
    heads: list[int] = [1, 2],
    draws: int = 8,
    tokens: int = 6,
    width: int = 8,
) -> list[dict[str, Any]]:
    """Measure attention alone for each attention, normaliser, position, mask and kind of sentinels, and every block for each attention and
    normaliser.

    `blocks`: by default all. Those with a skip connection are measured for each position and mask too, at the largest number of heads. A
    field that an attention does not read, such as the normaliser, is null. Masks that an attention does not support are left out.
    """
    for count in heads:
        if width % count:
            raise RankfallError(f"orders: {count} heads do not divide the width {width}")
    parts = parse_parts(attentions, normalisers, positions, masks, sentinels)
    return context.rows(
        compositions(parts, list(blocks or BLOCKS), heads, width),
        lambda composition: entry(composition, draws, tokens),
        made_of=lambda composition: components_of(composition.design),
    )


def parse_parts(*named: list[str | dict]) -> dict[str, list[Component]]:
    """Return kind -> components, for the kinds of PARTS in order."""
    parts = {kind: [Component.parse(item) for item in items] for kind, items in zip(PARTS.values(), named)}
    for kind, listed in parts.items():
        for component in listed:
            components.load(kind, component.name)  # a file that cannot be imported stops the measure early
    return parts


def write_parts(design: Architecture) -> dict[str, str | None]:
    """Return kind -> component as tables write it, null where nothing reads it."""
    return {kind: None if getattr(design, kind) is None else str(getattr(design, kind)) for kind in PARTS.values()}


def compositions(
    parts: dict[str, list[Component]], blocks: list[str], heads: list[int], width: int
) -> Iterator[Composition]:
    for base in bases(parts["attention"], parts["normaliser"], heads, width):
        offers = attention_fact(base.attention, "OFFERS")
        positions = [x for x in parts["position"] if offers is None or attention_offers("position", x, offers)]
        masks = [None] if base.mask is None else allowed_masks(base.attention, parts["mask"]) or parts["mask"]
        placed = [replace(base, position=where, mask=mask) for where, mask in product(positions, masks)]  # type: ignore[arg-type]
        for biases, design, sentinel in product((False, True), placed, parts["sentinels"]):
            yield Composition(replace(design, sentinels=sentinel), BARE, biases)
        for design, block in product(placed, blocks):
            skips = BLOCKS[block][0] != "none" and base.heads in (None, max(heads))
            if block != BARE and (design == base or skips):
                yield Composition(surround(design, block), block, True)


def surround(alone: Architecture, block: str) -> Architecture:
    """Return attention in a block. Norms have eps = 0, because an eps in the variance would bend the slopes."""
    residual, norm, placement, mlp = BLOCKS[block]
    placed = alone if norm == "none" else replace(alone, norm=Component(norm, {"eps": 0.0}), norm_placement=placement)  # type: ignore[arg-type]
    return replace(placed, residual=Component(residual), mlp=Component(mlp))


def bases(
    attentions: list[Component], normalisers: list[Component], heads: list[int], width: int
) -> Iterator[Architecture]:
    """Yield an attention with each normaliser and number of heads. Fields that it does not read, including the mask, are null."""
    for attention in attentions:
        ignored = attention_fact(attention, "IGNORES") or ()
        alone = replace(ALONE, attention=attention, width=width)
        if "mask" in ignored:
            alone = replace(alone, mask=None)  # type: ignore[arg-type]
        offers = attention_fact(attention, "OFFERS")
        readable = [x for x in normalisers if offers is None or attention_offers("normaliser", x, offers)]
        counts = [None] if "heads" in ignored else heads
        for normaliser, count in product([None] if "normaliser" in ignored else readable, counts):
            yield replace(alone, normaliser=normaliser, heads=count)  # type: ignore[arg-type]


def attention_fact(attention: Component, name: str) -> Any:
    return components.facts_of("attention", attention.name).get(name)


def allowed_masks(attention: Component, masks: list[Component]) -> list[Component]:
    """Return the masks that the attention supports, by its fact REQUIRES."""
    needed = [
        requirement["mask"] for requirement, _ in attention_fact(attention, "REQUIRES") or () if "mask" in requirement
    ]
    options = [values if isinstance(values, list | tuple) else [values] for values in needed]
    return [mask for mask in masks if all(any(matches(mask, value) for value in values) for values in options)]


def attention_offers(kind: str, component: Component, offers: Sequence[str]) -> bool:
    """Check whether the attention offers what the position or normaliser acts on."""
    description, default = (
        components.describe(kind, component.name),
        ("queries", "scores") if kind == "position" else (),
    )
    return description is not None and set(description.facts.get("TOUCHES", default)) <= {"states", *offers}


def entry(composition: Composition, draws: int, tokens: int) -> list[dict[str, Any]]:
    """Return the rows of one architecture: res and sigma_2 / sigma_1."""
    design = composition.design
    about = write_parts(design) | {
        "block": composition.block,
        "heads": design.heads,
        "biases": composition.biases,
        "draws": draws,
    }
    if design.normaliser is not None and design.normaliser.name == "urpe":
        # With equal factors URPE is softmax, so they are drawn at random unless the options say otherwise.
        design = replace(design, normaliser=Component("urpe", {"random": True} | design.normaliser.options))
    theory, theory_reason = expect_order(design, composition.biases)
    known = {"theory": None if theory is None else float(theory), "theory_reason": theory_reason}
    try:
        res, ratio = measure_slopes(design, composition.biases, draws, tokens)
    except (MemoryError, torch.OutOfMemoryError):  # not the architecture's fault
        raise
    except Exception as error:  # anything that a component may raise
        reason = describe_error(error)
        if isinstance(error, RankfallError | Unknown):  # their text is complete without the type's name
            reason = reason.partition(": ")[2]
        res = ratio = leave_order_empty("none", reason)
    return [about | {"quantity": "res"} | res | known, about | {"quantity": "sigma_ratio"} | ratio]
