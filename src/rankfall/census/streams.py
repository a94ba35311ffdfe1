"""The measurement of one stream of a type: its parts, and its numbers by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rankfall.census.gains import Gain
from rankfall.census.norms import Norms, norms
from rankfall.census.scales import residuals_of_changes, scales, std_columns
from rankfall.check.bands import kind_of
from rankfall.check.equal import constant_inputs
from rankfall.check.layer import LayerReport, StreamReport
from rankfall.check.report import measure_stream
from rankfall.errors import describe_error
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow

VARIANTS = {  # name of a variant -> its column
    "SAN": "residual_san", "SAN+MLP": "residual_san_mlp", "SAN+skip": "residual_san_skip", "SAN+bare MLP": "residual_san_bare_mlp",
}  # fmt: skip
IN_STATES, IN_LAYERS, FEW_ROWS, NOWHERE = "in the states", "in the layers", "a few rows", "none"
CAUSAL, BOTH_WAYS, SOME_CAUSAL, UNMIXED = "causal", "bidirectional", "some layers causal", "nothing mixes tokens"


Reasons = dict[str, str]  # column -> why it has no value


def rows_of_stream(
    examined: Examined, flow: Flow, released: Mapping[str, Gain] | None = None, unbrought: str = ""
) -> list[dict[str, Any]]:
    """Return one row per layer, 0 to L.

    `released`: gains of the weights that were scaled to the released size. `unbrought`: the reason why others were not.
    """
    report = measure_stream(examined, flow)
    reasons = dict(report.reasons)
    about = part_columns(examined, flow, report) | norm_columns(examined, flow, reasons)
    about["kind"] = kind_of(flow, flow.post or about["size_free"] != 0)  # the same test as `has_norm`
    stds = std_columns(examined, flow, released)
    about |= stds
    if not stds:
        reasons["init_std"] = "its layers have no weight matrix that is not constant"
    if flow.missing or flow.unmeasured:
        reasons["stream"] = "; ".join((*flow.missing, *flow.unmeasured))
    if unbrought:
        reasons["as_released"] = unbrought
    changes = attempt(lambda: residuals_of_changes(examined, flow), reasons, "changes of weights") or {}
    ratios = attempt(lambda: scales(examined, flow), reasons, "ratios")
    rows = [layer_columns(report, layer) for layer in report.layers]
    for row in rows:
        row |= {f"residual_{name}": values[row["layer"]] for name, values in changes.items()}
    if ratios is not None:
        mixing, tokenwise, about["skip_scale"] = ratios
        if about["skip_scale"] is None:
            reasons["skip_scale"] = "a norm, or something else, stands between one addition and the next state"
        for row, *row_ratios in zip(rows[1:], mixing, tokenwise):
            row["mixing_ratio"], row["tokenwise_ratio"] = row_ratios
    about["reasons"] = "; ".join(f"{name}: {why}" for name, why in reasons.items())
    return [about | row for row in rows]


def attempt(function: Any, reasons: Reasons, name: str) -> Any:
    try:
        return function()
    except FAILURES as error:
        reasons[name] = describe_error(error)
        return None


def part_columns(examined: Examined, flow: Flow, report: StreamReport) -> dict[str, Any]:
    """Return the columns about the stream's parts, as measured."""
    first, last, where = constant_inputs(examined, flow, report)
    return {
        "stream": flow.name,
        "layers": flow.depth,
        "width": flow.width,
        "tokens": report.tokens,
        "samples": report.samples,
        "mixer": flow.mixer,
        "mixers": ", ".join(mixers(examined, flow)),
        "mask": mask_of(flow),
        "position": position_of(first, last, report.tokens),
        "distinct_first": first,
        "distinct_last": last,
        "equal_tokens": where,
        "skips": flow.skips,
        "parallel": flow.parallel,
        "dtype": str(examined.dtype).removeprefix("torch."),
    }


def mixers(examined: Examined, flow: Flow) -> list[str]:
    """Return the classes of modules that mix tokens, the most frequent first: the module with the attention weights, else the branch's."""
    known = dict(examined.model.named_modules())
    attending = {number: operation.call.module for operation, number in flow.attends.items()}
    counts: Counter[str] = Counter()
    for branch in flow.branches:
        if branch.mixes:
            layer = flow.layers[branch.layer - 1]
            names = [attending.get(branch.number, ""), f"{layer}.{branch.name}", branch.name, layer]
            modules = [known[name] for name in names if name and name in known and list(known[name].children())]
            counts[type(modules[0]).__name__ if modules else branch.name] += 1
    return [name for name, _ in counts.most_common()]


def mask_of(flow: Flow) -> str:
    """Return the kind of mask, by the positions that changed with one token."""
    mixing = [branch for branch in flow.branches if branch.mixes]
    if not mixing:
        return UNMIXED
    if flow.causal:
        return CAUSAL
    return BOTH_WAYS if all(branch.backwards for branch in mixing) else SOME_CAUSAL


def position_of(first: int | None, last: int | None, tokens: int) -> str | None:
    """Return where most equal tokens become different: in the states that enter, in the layers, in a few rows only, or nowhere."""
    if first is None or last is None:
        return None
    if max(first, last) > tokens / 2:
        return IN_STATES if first > tokens / 2 else IN_LAYERS
    return FEW_ROWS if max(first, last) > 1 else NOWHERE


def norm_columns(examined: Examined, flow: Flow, reasons: Reasons) -> dict[str, Any]:
    measured: Norms | None = attempt(lambda: norms(examined, flow), reasons, "norm")
    if measured is None:
        return {"size_free": None}
    hidden = bool(measured.free) and not measured.kinds
    if hidden:
        reasons["norm"] = (
            "no module is a norm, yet branches do not see the size of the state: it is computed inside another"
        )
    return {
        "norm": None if hidden else " and ".join(sorted(measured.kinds)) or "none",
        "norm_class": ", ".join(measured.classes),
        "norm_place": None if hidden else " and ".join(sorted(measured.places)),
        "size_free": measured.free,
    }


def layer_columns(report: StreamReport, layer: LayerReport) -> dict[str, Any]:
    """Return the numbers of the state that leaves a layer."""
    cut = {column: report.variants[name][layer.layer] for name, column in VARIANTS.items() if name in report.variants}
    orders = layer.orders
    return {
        "layer": layer.layer,
        "name": layer.name,
        "parts": "; ".join(layer.parts),
        "residual": layer.residual,
        "floor": report.floor,
        **cut,
        "norm_of_state": layer.norm,
        "effective_rank": layer.effective_rank,
        "distinct": layer.distinct,
        "order": max(orders.values()) if orders else None,
        "orders": "; ".join(f"{name} {value:.3f}" for name, value in orders.items()),
        "entropy": layer.entropy,
        "first_share": layer.first,
        "gradient": layer.gradient,
        "query_gradient": layer.query_gradient,
        "key_gradient": layer.key_gradient,
        "influence_first": layer.influence_first,
        "influence_middle": layer.influence_middle,
        "influence_last": layer.influence_last,
    }
