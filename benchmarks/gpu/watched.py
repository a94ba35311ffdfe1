"""Does watching a training on a GPU change it, are its rows those of a processor, what does it cost; and is a model there measured as here?

The models are plain PyTorch: a decoder of twelve layers, in float32 and under autocast to bfloat16.
"""

import copy
import statistics
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu.rows import Rows
from benchmarks.gpu.timing import seconds_of
from benchmarks.watch import DEPTH, WORDS, Decoder
from rankfall.api.residuals import residuals
from rankfall.watch import watch

CPU = torch.device("cpu")
SAME = (
    "residual",
    "norm",
    "effective_rank",
    "entropy",
    "largest_share",
    "first_share",
    "gradient_queries",
    "gradient_keys",
)
EVERY, STEPS = 50, 20
BOUND = 2e-3  # relative, of what is computed in float64 from states in float32


def measure_watched(rows: Rows, device: torch.device, tiny: bool) -> None:
    width, tokens, batch, depth = (16, 8, 2, 2) if tiny else (256, 128, 16, DEPTH)
    torch.manual_seed(0)
    model, words = Decoder(width, depth), torch.randint(0, WORDS, (batch, tokens))
    name = f"decoder of {depth} layers, width {width}"
    with tempfile.TemporaryDirectory() as folder:
        compare_rows(rows, device, model, words, name, Path(folder))
        compare_weights(rows, device, model, words, name, Path(folder))
        measure_cost(rows, device, model, words, name, Path(folder), 0.02 if tiny else 1.0)
    compare_residuals(rows, device, depth)


def compare_rows(rows: Rows, device: torch.device, model: nn.Module, words: Tensor, name: str, folder: Path) -> None:
    """Of the first step, from equal weights and one batch."""
    expected = watched_rows(model, words, CPU, False, folder / "here.parquet")
    found = watched_rows(model, words, device, False, folder / "there.parquet")
    for column in SAME:
        rows.check(f"watched {column}", largest_difference(found, expected, column), BOUND, shape=name)
    narrow = watched_rows(model, words, device, True, folder / "bf16.parquet")
    missing = sum(row[column] is None for column in SAME for row in narrow if row["layer"])
    rows.check(
        "watched values that are null, bfloat16", missing, 0, unit=f"of {len(SAME) * (len(narrow) - 1)}", shape=name
    )


def compare_weights(rows: Rows, device: torch.device, model: nn.Module, words: Tensor, name: str, folder: Path) -> None:
    """Weights of a training that is watched at every step, and of two that are not: these say whether it can be repeated at all."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        plain = [trained(model, words, device, None) for _ in range(2)]
        watched = trained(model, words, device, folder / "every.parquet")
    repeated = int((plain[0] != plain[1]).sum())
    unit = f"of {plain[0].numel()}"
    rows.add("weights of a training repeated that differ", repeated, unit, shape=name)
    if repeated:
        rows.add(
            "weights of a watched training that differ", status="skipped", reason="nor are two unwatched ones equal"
        )
    else:
        rows.check(
            "weights of a watched training that differ", int((watched != plain[0]).sum()), 0, unit=unit, shape=name
        )


def measure_cost(
    rows: Rows, device: torch.device, model: nn.Module, words: Tensor, name: str, folder: Path, about: float
) -> None:
    for label, narrow in (("float32", False), ("bfloat16", True)):
        own, batch = copy.deepcopy(model).to(device), words.to(device)
        optimizer = torch.optim.AdamW(own.parameters(), lr=1e-4)
        plain, watched = [], []
        for turn in range(3):
            plain.append(seconds_of(lambda: step(own, optimizer, batch, narrow), device, about))  # noqa: B023
            with watch(own, EVERY, folder / f"{label}{turn}.parquet"):
                watched.append(seconds_of(lambda: step(own, optimizer, batch, narrow), device, about))  # noqa: B023
        with watch(own, 1, folder / f"{label}.parquet"):
            logged = seconds_of(lambda: step(own, optimizer, batch, narrow), device, about)  # noqa: B023
        rows.add(f"step, {label}", statistics.median(plain), "s", shape=name, engine="plain")
        rows.add(f"step, watched every {EVERY}th, {label}", statistics.median(watched), "s", shape=name, engine="plain")
        rows.add(f"logged step, {label}", logged, "s", shape=name, engine="plain")


def compare_residuals(rows: Rows, device: torch.device, depth: int) -> None:
    """Of a module that lies on the device, by layer, and of the same one on the processor."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model, x = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), torch.randn(2, 24, 64)
    expected = residuals(model, x)
    found = residuals(copy.deepcopy(model).to(device), x.to(device))
    pairs = [pair for name in expected for pair in zip(found[name], expected[name], strict=True)]
    apart = max(abs(one - other) / abs(other) for one, other in pairs if one is not None and other)
    rows.check("residuals of a module on the device", apart, 1e-9, shape=f"encoder of {depth} layers")


def watched_rows(
    model: nn.Module, words: Tensor, device: torch.device, narrow: bool, file: Path
) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    own = copy.deepcopy(model).to(device)
    with watch(own, 1, file):
        step(own, torch.optim.AdamW(own.parameters(), lr=1e-4), words.to(device), narrow)
    return sorted(pq.read_table(file).to_pylist(), key=lambda row: row["layer"])


def trained(model: nn.Module, words: Tensor, device: torch.device, file: Path | None) -> Tensor:
    own, batch = copy.deepcopy(model).to(device), words.to(device)
    optimizer = torch.optim.AdamW(own.parameters(), lr=1e-4)
    with watch(own, 1, file) if file else nullcontext():
        for _ in range(STEPS):
            step(own, optimizer, batch, False)
    return torch.cat([weight.detach().flatten() for weight in own.parameters()]).cpu()


def step(model: nn.Module, optimizer: torch.optim.Optimizer, words: Tensor, narrow: bool) -> None:
    optimizer.zero_grad()
    with torch.autocast(words.device.type, torch.bfloat16, enabled=narrow):
        loss = model(words)
    loss.backward()
    optimizer.step()


def largest_difference(found: list[dict[str, Any]], expected: list[dict[str, Any]], column: str) -> float:
    """Relative; infinite where one has a value and the other has none, or where there is none at all."""
    pairs = [(one[column], other[column]) for one, other in zip(found, expected, strict=True)]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not known or any((one is None) != (other is None) for one, other in pairs):
        return float("inf")
    return max(abs(one - other) / max(abs(other), 1e-6) for one, other in known)
