"""The check of transfer over widths or depths."""

import inspect
import math
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.attention import rms
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.errors import describe_error
from rankfall.streams.arguments import Arguments, arguments_of, as_format, call_model
from rankfall.streams.frames import Call, Frames
from rankfall.streams.record import tensors_in

GROWS = Limit(
    0.3,
    "a slope above this, of log RMS over log size, warns",
    "0 under muP, 1/2 for sums that are not scaled (Yang et al. 2022, arXiv:2203.03466)",
)
LINEAR = Limit(
    0.75,
    "a slope above this fails",
    "1 for steps of Adam with one rate for all widths, in standard parametrisation (same source)",
)
STEPS, RATE, SEEDS = 3, 1e-3, 3
ZERO = 1e-12  # an RMS below this counts as this
SIZES = {"width": (32, 64, 128), "depth": (2, 4, 8)}


@named("width-transfers", GROWS, LINEAR, states=False)
def width_transfers(recording: RecordedStream) -> Result:
    """Are activations and their updates as large in wide models as in narrow ones?

    The coordinate check of muP. `build(width=)` is called with 32, 64 and 128, or `build(depth=)` with 2, 4 and 8, for 3 seeds. It returns
    the module, or a tuple of the module and its inputs, its optimiser, or both; the default optimiser is Adam (0.001). At birth, and after
    3 steps on the loss or on a random linear function of the output, the RMS of what each module returns and of its change are taken; the
    slope of their log over the log of the size must be below the limits, for the model and all of its modules that have parts and exist
    in all sizes. A single map may grow, since a factor may follow it.
    """
    if recording.build is None:
        return skipped("pass build=, a function of width or of depth that returns the module")
    sizes = [name for name in SIZES if name in inspect.signature(recording.build).parameters]
    if not sizes:
        return failed("build= takes neither width nor depth")
    sentences, slopes, where = [], [], ""
    for size in sizes:
        try:
            measured = [coordinates(recording, {size: value}) for value in SIZES[size]]
        except Exception as error:  # whatever the function and its model raise
            return failed(f"build({size}=) or a step of what it returns fails: {describe_error(error, 120)}")
        for quantity, index in (("activations", 0), ("updates", 1)):
            by_module = {
                name: fit_slope(SIZES[size], [run[name][index] for run in measured])
                for name in measured[0]
                if all(name in run for run in measured)
            }
            slopes.append(max(by_module[name] for name in by_module if not name or measured[0][name][2]))
            sentences.append(f"{quantity} grow as {size}^{slopes[-1]:.2f}")
            if slopes[-1] > GROWS:
                where = where or next(name for name, slope in by_module.items() if slope > GROWS)
    if max(slopes) > GROWS:
        return (failed if max(slopes) > LINEAR else warned)(", ".join(sentences), where)
    return passed(", ".join(sentences))


def coordinates(recording: RecordedStream, size: dict[str, int]) -> dict[str, tuple[float, float, bool]]:
    """Return the RMS of the output of each module at birth and of its change in a few steps, as means over seeds, and whether it has parts.

    Modules are in the order in which their calls end.
    """
    values: dict[str, list[tuple[float, float]]] = {}
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        assert recording.build is not None
        built = recording.build(**size)
        parts = built if isinstance(built, tuple) else (built,)
        model = next(part for part in parts if isinstance(part, nn.Module)).float().eval()
        optimizer = next((part for part in parts if isinstance(part, torch.optim.Optimizer)), None)
        inputs = [part for part in parts if part is not model and part is not optimizer]
        arguments = as_format(arguments_of(inputs[0]) if inputs else recording.examined.arguments, torch.float32)
        before = module_outputs(model, arguments)
        train_few_steps(recording, model, arguments, optimizer or torch.optim.Adam(model.parameters(), lr=RATE))
        after = module_outputs(model, arguments)
        for name, output in before.items():
            values.setdefault(name, []).append((rms(output), rms(after[name] - output)))
    inner = {name for name, module in model.named_modules() if any(True for _ in module.children())}
    return {name: (*map(mean, zip(*pairs)), name in inner) for name, pairs in values.items()}


def train_few_steps(
    recording: RecordedStream, model: nn.Module, arguments: Arguments, optimizer: torch.optim.Optimizer
) -> None:
    """Train on the loss, or on a random linear function of the output: a sum over features, a mean over all else."""
    generator = torch.Generator().manual_seed(0)
    probes: list[Tensor] = []
    with torch.enable_grad():
        for _ in range(STEPS):
            output = call_model(model, arguments)
            tensors = [tensor for _, tensor in tensors_in(output) if tensor.requires_grad]
            probes = probes or [torch.randn(tensor.shape, generator=generator) for tensor in tensors]
            scaled = [(tensor * probe).mean() * tensor.shape[-1] ** 0.5 for tensor, probe in zip(tensors, probes)]
            loss = sum(scaled, torch.zeros(())) if recording.loss is None else recording.loss(output)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def module_outputs(model: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
    """Return the first floating-point tensor that each module returns in its last call; '' is the whole model."""
    outputs: dict[str, Tensor] = {}

    def keep(call: Call, inputs: Any, output: Any) -> None:
        tensors = [tensor.detach().clone() for _, tensor in tensors_in(output) if tensor.is_floating_point()]
        outputs.update({call.module: tensors[0]} if tensors else {})

    with torch.no_grad(), Frames(model, on_exit=keep):
        call_model(model, arguments)
    return outputs


def fit_slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """Return the slope of log value over log size, by the ends: of sizes in equal steps these are the fit."""
    first, last = (math.log(max(values[place], ZERO)) for place in (0, -1))
    return (last - first) / math.log(sizes[-1] / sizes[0])
