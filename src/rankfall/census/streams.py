"""The measurement of one stream of a type: its parts, and its numbers by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rankfall.census.gains import Gain
from rankfall.census.norms import norms
from rankfall.census.scales import find_stds, residuals_of_changes, scales
from rankfall.check.bands import kind_of
from rankfall.check.equal import constant_inputs
from rankfall.check.layer import LayerReport, StreamReport
from rankfall.check.report import measure_stream
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow

VARIANTS = {  # name of a variant -> its column
    "SAN": "residual_san", "SAN+MLP": "residual_san_mlp", "SAN+skip": "residual_san_skip", "SAN+bare MLP": "residual_san_bare_mlp",
}  # fmt: skip
IN_STATES, IN_LAYERS, FEW_ROWS, NOWHERE = "in the states", "in the layers", "a few rows", "none"
CAUSAL, BOTH_WAYS, SOME_CAUSAL, UNMIXED = "causal", "bidirectional", "some layers causal", "nothing mixes tokens"


@dataclass
class Reasons:
    by_column: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        return "; ".join(f"{name}: {why}" for name, why in self.by_column.items())


def rows_of_stream(
    examined: Examined, flow: Flow, released: Mapping[str, Gain] | None = None, unbrought: str = ""
) -> list[dict[str, Any]]:
    """Return one row per layer, 0 to L.

    `released`: gains of the weights that were scaled to the released size. `unbrought`: the reason why others were not.
    """
    report = measure_stream(examined, flow)
    reasons = Reasons(dict(report.reasons))
    about = part_columns(examined, flow, report) | norm_columns(examined, flow, reasons)
    about["kind"] = kind_of(flow, flow.post or about["size_free"] != 0)  # the same test as `has_norm`
    stds = find_stds(examined, flow, released)
    about |= {
        "init_std": stds.std, "init_std_scaled": stds.scaled, "init_std_least": stds.least, "init_std_most": stds.most,
        "as_released": stds.released,
    }  # fmt: skip
    if stds.std is None:
        reasons.by_column["init_std"] = "its layers have no weight matrix that is not constant"
    if flow.missing or flow.unmeasured:
        reasons.by_column["stream"] = "; ".join((*flow.missing, *flow.unmeasured))
    if unbrought:
        reasons.by_column["as_released"] = unbrought
    changes = attempt(lambda: residuals_of_changes(examined, flow), reasons, "changes of weights") or {}
    ratios = attempt(lambda: scales(examined, flow), reasons, "ratios")
    about["skip_scale"] = ratios.skip if ratios is not None else None
    if ratios is not None and ratios.skip is None:
        reasons.by_column["skip_scale"] = "a norm, or something else, stands between one addition and the next state"
    rows = [layer_columns(report, layer) for layer in report.layers]
    for row in rows:
        row |= {f"residual_{name}": values[row["layer"]] for name, values in changes.items()}
    for row in rows[1:]:
        place = row["layer"] - 1
        row["mixing_ratio"] = ratios.mixing[place] if ratios is not None else None
        row["tokenwise_ratio"] = ratios.tokenwise[place] if ratios is not None else None
    about["reasons"] = reasons.text()
    return [about | row for row in rows]


def attempt(function: Any, reasons: Reasons, name: str) -> Any:
    try:
        return function()
    except FAILURES as error:
        reasons.by_column[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
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
    back = [branch.backwards for branch in mixing]
    if not any(back):
        return CAUSAL
    return BOTH_WAYS if all(back) else SOME_CAUSAL


def position_of(first: int | None, last: int | None, tokens: int) -> str | None:
    """Return where most equal tokens become different: in the states that enter, in the layers, in a few rows only, or nowhere."""
    if first is None or last is None:
        return None
    if max(first, last) > tokens / 2:
        return IN_STATES if first > tokens / 2 else IN_LAYERS
    return FEW_ROWS if max(first, last) > 1 else NOWHERE


def norm_columns(examined: Examined, flow: Flow, reasons: Reasons) -> dict[str, Any]:
    measured = attempt(lambda: norms(examined, flow), reasons, "norm")
    if measured is None:
        return {"norm": None, "norm_class": None, "norm_place": None, "size_free": None}
    if not measured.kinds and measured.free:
        reasons.by_column["norm"] = (
            "no module is a norm, yet branches do not see the size of the state: it is computed inside another"
        )
    return {
        "norm": " and ".join(sorted(measured.kinds)) or ("none" if not measured.free else None),
        "norm_class": ", ".join(measured.classes),
        "norm_place": " and ".join(sorted(measured.places)) if measured.kinds or not measured.free else None,
        "size_free": measured.free,
    }


def layer_columns(report: StreamReport, layer: LayerReport) -> dict[str, Any]:
    """Return the numbers of the state that leaves a layer."""
    cut = {column: at(report.variants.get(name), layer.layer) for name, column in VARIANTS.items()}
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


def at(values: list[float | None] | None, layer: int) -> float | None:
    return None if values is None else values[layer]
