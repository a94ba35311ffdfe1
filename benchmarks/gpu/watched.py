"""Check that watching a training on a GPU does not change it, compare its rows and residuals with a processor's, and measure its cost.

The models are plain PyTorch: a decoder of twelve layers, in float32 and under autocast to bfloat16.
"""

import copy
import statistics
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from benchmarks.gpu.limits import seconds_of
from benchmarks.gpu.rows import Rows
from benchmarks.networks import CPU
from benchmarks.watch import DEPTH, EVERY, WORDS, Decoder, Training
from rankfall.api.residuals import residuals
from rankfall.watch import watch

COLUMNS = [
    "residual",
    "norm",
    "effective_rank",
    "entropy",
    "largest_share",
    "first_share",
    "gradient_queries",
    "gradient_keys",
]
STEPS = 20  # of each training whose weights are compared
BOUND = 2e-3  # relative, for what is computed in float64 from states in float32


def measure_watched(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Compare and time watched trainings of a decoder, and compare residuals of an encoder."""
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
    """Compare the rows of the first step, from equal weights and one batch."""
    expected = watch_step(Training(model, words, CPU), folder / "processor.parquet")
    watched = watch_step(Training(model, words, device), folder / "device.parquet")
    for column in COLUMNS:
        rows.check(f"watched {column}", largest_difference(watched, expected, column), BOUND, shape=name)
    narrow = watch_step(Training(model, words, device, narrow=True), folder / "bf16.parquet")
    missing = sum(row[column] is None for column in COLUMNS for row in narrow if row["layer"])
    unit = f"of {len(COLUMNS) * (len(narrow) - 1)}"
    rows.check("watched values that are null, bfloat16", missing, 0, unit=unit, shape=name)


def compare_weights(rows: Rows, device: torch.device, model: nn.Module, words: Tensor, name: str, folder: Path) -> None:
    """Compare the weights of a training that is watched at every step with those of two that are not and must agree first."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        plain = [train(Training(model, words, device), None) for _ in range(2)]
        watched = train(Training(model, words, device), folder / "every.parquet")
    repeated, unit = int((plain[0] != plain[1]).sum()), f"of {plain[0].numel()}"
    rows.add("weights of a training repeated that differ", repeated, unit, shape=name)
    quantity = "weights of a watched training that differ"
    if repeated:
        rows.add(quantity, status="skipped", reason="nor are two unwatched ones equal")
    else:
        rows.check(quantity, int((watched != plain[0]).sum()), 0, unit=unit, shape=name)


def measure_cost(
    rows: Rows, device: torch.device, model: nn.Module, words: Tensor, name: str, folder: Path, length: float
) -> None:
    """Time steps that are not watched, watched and logged, for about `length` seconds each."""
    for label, narrow in (("float32", False), ("bfloat16", True)):
        training = Training(model, words, device, narrow)
        plain, watched = [], []
        for turn in range(3):
            plain.append(seconds_of(training.step, device, length))
            with watch(training.model, EVERY, folder / f"{label}{turn}.parquet"):
                watched.append(seconds_of(training.step, device, length))
        with watch(training.model, 1, folder / f"{label}.parquet"):
            logged = seconds_of(training.step, device, length)
        labels = {"shape": name, "engine": "plain"}
        rows.add(f"step, {label}", statistics.median(plain), "s", **labels)
        rows.add(f"step, watched every {EVERY}th, {label}", statistics.median(watched), "s", **labels)
        rows.add(f"logged step, {label}", logged, "s", **labels)


def compare_residuals(rows: Rows, device: torch.device, depth: int) -> None:
    """Compare the residuals by layer of a module on the device with those on the processor."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model, x = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), torch.randn(2, 24, 64)
    expected = residuals(model, x)
    measured = residuals(copy.deepcopy(model).to(device), x.to(device))
    pairs = [pair for name in expected for pair in zip(measured[name], expected[name], strict=True)]
    difference = max(abs(a - b) / abs(b) for a, b in pairs if a is not None and b)
    rows.check("residuals of a module on the device", difference, 1e-9, shape=f"encoder of {depth} layers")


def watch_step(training: Training, file: Path) -> list[dict[str, Any]]:
    """Return the rows of one watched step by layer."""
    with watch(training.model, 1, file):
        training.step()
    return sorted(pq.read_table(file).to_pylist(), key=lambda row: row["layer"])


def train(training: Training, file: Path | None) -> Tensor:
    """Take some steps, watched if there is a file, and return all weights."""
    with watch(training.model, 1, file) if file else nullcontext():
        for _ in range(STEPS):
            training.step()
    return torch.cat([weight.detach().flatten() for weight in training.model.parameters()]).cpu()


def largest_difference(rows: list[dict[str, Any]], expected: list[dict[str, Any]], column: str) -> float:
    """Return the largest relative difference, infinite if a value is missing on one side or all are missing."""
    pairs = [(row[column], other[column]) for row, other in zip(rows, expected, strict=True)]
    values = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not values or any((a is None) != (b is None) for a, b in pairs):
        return float("inf")
    return max(abs(a - b) / max(abs(b), 1e-6) for a, b in values)
