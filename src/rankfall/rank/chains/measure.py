"""Products of a model's attention matrices along random paths, and their distance from rank one."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from rankfall.errors import RankfallError
from rankfall.measure.context import Context, Rows
from rankfall.measure.models import TEXTS, measure_models
from rankfall.models.source import PACKAGES
from rankfall.models.subject import Subject
from rankfall.random_streams import stream
from rankfall.rank import residual as res
from rankfall.rank.powers import or_nan, reason_of, unit
from rankfall.streams.arguments import Wide, run_model
from rankfall.streams.record import SOFTMAX

NEEDS = "nothing"
FILES, READS = TEXTS, PACKAGES


@measure_models(seeds=2, samples=8, length=128)
def chains(context: Context, subject: Subject, *, repeats: int = 100) -> Rows:
    """Measure `repeats` random paths of every length. Each path draws its text among `samples`, its layers and its heads."""
    rng = stream(subject.seed or 0, "chains")
    drawn: dict[int, list[tuple[int, int, list[tuple[int, int]]]]] = {}  # text -> length, repeat, (layer, head) pairs
    for length in range(1, subject.layers + 1):
        for repeat in range(repeats):
            sample = int(rng.integers(subject.batch.samples))
            layers = np.sort(rng.choice(subject.layers, length, replace=False))
            heads = rng.integers(subject.loaded.heads, size=length)
            drawn.setdefault(sample, []).append((length, repeat, list(zip(layers.tolist(), heads.tolist()))))
    rows: Rows = []
    for sample, paths in drawn.items():  # one text at a time: all its matrices are in memory
        maps = torch.stack([layer[0].double() for layer in attention_maps(subject, sample, sample + 1)])  # (L, H, T, T)
        for length, repeat, path in paths:
            product = chain(maps, path)
            value, from_mean = rank_one_residual(product), float(res.relative_residual(product))
            about: dict[str, Any] = {"chain": length, "repeat": repeat, "sample": sample}
            numbers = {"residual": value, "from_mean": from_mean}
            about |= {name: number if math.isfinite(number) else None for name, number in numbers.items()}
            about |= {"floor": bool(res.at_floor(torch.tensor(value), subject.dtype))}
            rows.append(about | {"value_reason": reason_of(product[None])})
    return rows


class _Catch(TorchFunctionMode):
    """Torch function mode that keeps every softmax over tokens, in order: one per layer."""

    def __init__(self) -> None:
        super().__init__()
        self.maps: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in SOFTMAX and result.dim() == 4 and result.shape[-1] == result.shape[-2]:
            self.maps.append(result)
        return result


def attention_maps(subject: Subject, start: int, stop: int) -> list[Tensor]:
    """Return P_h of every layer of the whole model, skips included: (B, H, T, T) each, with rows that sum to one."""
    catch = _Catch()
    with catch, Wide():  # the inner mode sees a call first and passes it on
        run_model(subject.loaded.model, subject.inputs(start, stop))
    if len(catch.maps) != subject.layers:
        raise RankfallError(
            f"model {subject.request.source.name!r}: {len(catch.maps)} attention matrices found in {subject.layers} layers"
        )
    return catch.maps


def chain(maps: Tensor, path: Sequence[tuple[int, int]]) -> Tensor:
    """Return P_k ... P_1 for (layer, head) pairs from first to last; maps (L, H, T, T)."""
    product = maps[path[0]]
    for step in path[1:]:
        product = maps[step] @ product
    return product


def rank_one_residual(matrix: Tensor) -> float:
    """Return ||A - sigma_1 u v^T|| / ||A||, composite norm."""
    matrix = unit(matrix)
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    remainder = (u[:, 1:] * s[1:]) @ vh[1:]  # sum of the small parts, which avoids subtraction
    return float(
        or_nan(res.share(res.matrix_norm(remainder, "composite"), res.matrix_norm(matrix, "composite")), matrix)
    )
