"""The stages that a shallow backbone returns: the default list names layers that it no longer has."""

from __future__ import annotations

from typing import Any


def kept_stages(key: str, value: list[Any], depth: int, plain: dict[str, Any]) -> list[Any] | None:
    """Return `out_features` or `out_indices` at the same relative depths of fewer layers, for a part whose stages are its layers; None
    if they stay.
    """
    names = plain.get("stage_names") or []
    layers = len(names) - 1
    numbers = [names.index(one) if one in names else one for one in value]
    if layers != plain.get("num_hidden_layers") or not all(isinstance(one, int) and one >= 0 for one in numbers):
        return None
    if len(set(numbers)) != len(numbers) or len(numbers) > depth or max(numbers) <= depth:
        return None
    ranked = sorted(numbers)
    kept: list[int] = []
    for rank, one in enumerate(ranked):  # distinct, with room for those that follow
        least, most = (kept[-1] + 1 if kept else 0), depth - (len(ranked) - 1 - rank)
        kept.append(min(max(-(-one * depth // layers), least), most))
    places = [kept[ranked.index(one)] for one in numbers]
    return [names[one] for one in places] if key == "out_features" else places
