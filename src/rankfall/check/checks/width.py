"""The check of transfer over widths or depths."""

import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.named import Limit, Result, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import arguments_of, as_format, call_model, copy_of
from rankfall.streams.edits import Edits
from rankfall.streams.examine import examine
from rankfall.streams.passes import run_through
from rankfall.streams.record import tensors_in

SLOPE = Limit(
    0.3,
    "a slope above this, of log RMS over log width, warns",
    "0 under muP, 1/2 for sums that are not scaled, 1 for steps of Adam (Yang et al. 2022, arXiv:2203.03466)",
)
STEPS, RATE = 3, 1e-3
SIZES = {"width": (32, 64, 128), "depth": (2, 4, 8)}


@named("width-transfers", SLOPE)
def width_transfers(seen: RecordedStream) -> Result:
    """Are activations and their updates as large in wide models as in narrow ones?

    The coordinate check of muP. `build(width=)` is called with 32, 64 and 128, or `build(depth=)` with 2, 4 and 8; it returns the module,
    or the module and its inputs. At birth, and after 3 steps of Adam (0.001) on a random linear function of the output, the RMS of the last
    state and of its change are taken; the slope of their log over the log of the size must be below the limit.
    """
    if seen.build is None:
        return skipped("pass build=, a function of width or of depth that returns the module")
    names = [name for name in SIZES if name in inspect.signature(seen.build).parameters]
    if not names:
        return skipped("build= takes neither width nor depth")
    said, steep = [], False
    for name in names:
        pairs = [coordinates(seen, seen.build(**{name: size})) for size in SIZES[name]]
        for what, values in zip(("activations", "updates"), zip(*pairs)):
            slope = fit_slope(SIZES[name], values)
            steep |= slope > SLOPE
            said.append(f"{what} grow as {name}^{slope:.2f}")
    return warned("; ".join(said)) if steep else passed("; ".join(said))


def coordinates(seen: RecordedStream, built: Any) -> tuple[float, float]:
    """Return the RMS of the last state at birth, and of its change in a few steps."""
    model, inputs = built if isinstance(built, tuple) else (built, seen.examined.arguments)
    arguments = as_format(arguments_of(inputs), torch.float32)
    model = copy_of(model, torch.float32)
    before = last_state(model, inputs)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    probes: list[Tensor] = []
    with torch.enable_grad():
        for _ in range(STEPS):
            outs = [one for _, one in tensors_in(call_model(model, arguments)) if one.requires_grad]
            probes = probes or [torch.randn(one.shape, generator=torch.Generator().manual_seed(0)) for one in outs]
            optimizer.zero_grad()
            sum(((one * probe).mean() for one, probe in zip(outs, probes)), torch.zeros(())).backward()
            optimizer.step()
    change = last_state(model, inputs) - before
    return float(before.pow(2).mean().sqrt()), float(change.pow(2).mean().sqrt())


def last_state(model: nn.Module, inputs: Any) -> Tensor:
    examined = examine(model, inputs)
    return run_through(examined.model, examined.arguments, examined.flows[0], Edits()).states[-1].detach()


def fit_slope(sizes: tuple[int, ...], values: Any) -> float:
    """Return the slope of log value over log size, by the ends."""
    return (math.log(max(values[-1], 1e-300)) - math.log(max(values[0], 1e-300))) / math.log(sizes[-1] / sizes[0])
