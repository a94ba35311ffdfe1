"""Ability of attention to distinguish n equal tokens: the number of distinct rows, by theory and in networks at random weights.

The input is one symbol n times, and the question is how many different rows the last layer can have. Theory (`position/theory.py`) gives
an upper bound for all weights, from the declarations of components, and the argument that decides. The measured answer is the largest
number of distinct rows among `draws` networks in float64. All of their parameters are drawn, including those that usually start
symmetric. Rows are equal if they differ by less than 1e-12 of their size (`position/rows.py`). Where all draws stay below theory, 16
times as many are drawn. The table gives a reason for a difference between the two. Trained networks are measured by `probe_trained`.

Components rule out some compositions: by REFUSES, by REQUIRES, or by a position's TOUCHES that an attention's OFFERS lack. The plan
refuses such cells before anything runs (`run/config/rules.py`). A measure that composes networks itself says so in its rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from rankfall import components
from rankfall.components import facts_of
from rankfall.design import Architecture, Component, attention_alone, components_of
from rankfall.design import parts as fields_of
from rankfall.errors import describe_error
from rankfall.filters import as_list
from rankfall.measure.context import Context
from rankfall.nets.network import Shape
from rankfall.position.agreement import FEWER, agreement, explain_untrained
from rankfall.position.rows import distinct, last_rows, random_networks
from rankfall.position.theory import decide
from rankfall.rank.orders.measure import parse_parts, write_parts

NEEDS = "nothing"
MORE = 16  # factor on the draws if they show fewer rows than theory allows: weights of relu^2 may be zero in all

# The architecture around the attention that is probed.
PROBED = attention_alone(
    "probed",
    residual=Component("add"),
    norm=Component("layer"),
    embedding=Component("token"),
    init=Component("published"),
    heads=2,
    width=8,
)


def probe(
    context: Context,
    *,
    attentions: list[str | dict] = ["multihead"],
    normalisers: list[str | dict] = [
        "softmax",
        "log_n",
        "cosine",
        "key_normalised",
        "relu2_sum",
        "zero_sum",
        "softmax_off_by_one",
        "sigmoid",
        "exp",
        "l2",
        "swish_l2",
        "relu2",
        "urpe",
    ],
    positions: list[str | dict] = [
        "none",
        "symmetric",
        "alibi",
        "t5",
        "toeplitz",
        "rope",
        "transformer_xl",
        "deberta",
        "fire",
        "shaw_keys",
        "shaw",
        "learned",
        "sinusoidal",
    ],
    masks: list[str | dict] = ["none", "causal", {"name": "local", "window": 2}, {"name": "dilated", "window": 2}],
    sentinels: list[str | dict] = ["none", "bos", "cls_sep"],
    depths: list[int] = [2],
    tokens: int = 32,
    draws: int = 8,
) -> list[dict[str, Any]]:
    """Probe every combination of attention, normaliser, position, mask, sentinels and depth.

    A normaliser or mask that the attention does not read is null.
    """
    parts = parse_parts(attentions, normalisers, positions, masks, sentinels)
    shared = [(kind, component) for kind in ("mask", "sentinels") for component in parts[kind]]
    return context.rows(
        designs(parts, depths),
        lambda design: [entry(design, tokens, draws)],
        # Each design depends on all masks and sentinels, so that code is hashed and watched for 169 combinations instead of 2,028.
        # Editing a mask measures everything again, which takes seconds.
        made_of=lambda design: [*components_of(design), *shared],
    )


def designs(parts: dict[str, list[Component]], depths: list[int]) -> Iterator[Architecture]:
    """Yield every combination of the components and depths."""
    for attention in parts["attention"]:
        ignored = components.facts_of("attention", attention.name).get("IGNORES", ())
        kinds = [kind for kind in ("normaliser", "position", "mask") if kind not in ignored]
        none: dict[str, Any] = dict.fromkeys({"normaliser", "mask"} & set(ignored))
        for *chosen, sentinels, depth in product(*(parts[kind] for kind in kinds), parts["sentinels"], depths):
            fields: dict[str, Any] = {**none, **dict(zip(kinds, chosen)), "sentinels": sentinels, "depth": depth}
            yield replace(PROBED, attention=attention, **fields)


def entry(design: Architecture, tokens: int, draws: int) -> dict[str, Any]:
    """Return the row of one architecture."""
    about = write_parts(design) | {"depth": design.depth, "tokens": tokens, "draws": draws}
    unmeasured = {"argument": "undecided", "argument_reason": "", "agreement": "not measured"}
    refused = refusal(design)
    if refused is not None:
        return about | unmeasured | {"reason": refused}
    try:
        verdict = decide(design, tokens)
        for count in (draws, MORE * draws):
            network = random_networks(design, Shape("tokens", "values", tokens, 1, 1), count)
            measured = distinct(last_rows(network, tokens))
            if agreement(verdict.rows, int(measured.rows.max())) != FEWER:
                break
    except (MemoryError, torch.OutOfMemoryError):  # not the architecture's fault
        raise
    except Exception as error:  # anything that a component may raise
        return about | unmeasured | {"reason": describe_error(error)}
    compared, reason = explain_untrained(verdict, measured, design)
    best = int(measured.rows.argmax())
    return about | {
        "draws": count,
        "theory_rows": verdict.rows,
        "argument": verdict.argument,
        "argument_reason": verdict.reason,
        "untrained_rows": int(measured.rows[best]),
        "untrained_least": int(measured.rows.min()),
        "widest_equal": float(measured.widest[best]),
        "narrowest_distinct": float(measured.narrowest[best]) if measured.rows[best] > 1 else None,
        "agreement": compared,
        "reason": reason,
    }


def refusal(design: Architecture) -> str | None:
    """Return the reason why this composition is not supported, in one line, or None if it is."""
    for field, kind in fields_of(Architecture).items():
        part = getattr(design, field)
        facts = {} if part is None else facts_of(kind, part.name)
        for fact, verb in (("REFUSES", "cannot be combined with"), ("REQUIRES", "needs")):
            for wanted, reason in facts.get(fact, ()):
                if all(name in fields_of(Architecture) for name in wanted) and fits(design, wanted) == (
                    fact == "REFUSES"
                ):
                    options = (f"{name}={' or '.join(map(str, as_list(value)))}" for name, value in wanted.items())
                    return f"{kind} {part.name!r} {verb} {', '.join(options)}: {reason}"
    offers = facts_of("attention", design.attention.name).get("OFFERS")
    for kind, part in (("position", design.position), ("normaliser", design.normaliser)):
        touches = () if part is None else facts_of(kind, part.name).get("TOUCHES", ())
        for place in touches:
            if offers is not None and place not in ("states", *offers):
                return f"{kind} {part.name!r} acts on {place}, which attention {design.attention.name!r} does not let it reach"
    return None


def fits(design: Architecture, wanted: Mapping[str, Any]) -> bool:
    """Check whether every field's component is one of those named, whatever its options."""
    names = {field: getattr(getattr(design, field), "name", None) for field in wanted}
    return all(name in as_list(wanted[field]) for field, name in names.items())
