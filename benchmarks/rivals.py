"""The engine beside what a careful user would pick: one of eight kinds of network with dropout, by two processes of one thread each.

    make bench ARGS=rivals                    # 1, 16 and 64 members; compiles for most of an hour
    make bench ARGS='rivals --members 16'     # without the compiled clean module, which is beside 1 member

The clean PyTorch module (`clean_kinds.py`), the same by `torch.compile`, `torch.func.vmap` over members with and without `torch.compile`,
JAX (`jit` of a `scan` of steps of `vmap`, `rivals_jax.py`), and the engine on the clean module. 1, 16 and 64 members; member-steps a
second, and seconds until the first step was taken. JAX and optax are in the engine's extra `bench`. Without them, there are no rows of JAX.
"""

import importlib.util
import shutil
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.clean import Network, Shape
from benchmarks.clean_kinds import KINDS
from benchmarks.record import Results
from benchmarks.steps import length
from benchmarks.workers import Variant, workers
from thousandfold import Adam
from thousandfold.servers import ProgramServer
from thousandfold.train import build_stack

COUNTS, DROPOUT = (1, 16, 64), 0.1
CLEAN, MACHINE = "clean", "machine"


def measure(results: Results) -> None:
    counts = (2,) if results.tiny else results.members or COUNTS
    with workers() as running:
        for name in list(KINDS)[:1] if results.tiny else list(KINDS):
            variants = variants_of(name, counts, results.tiny)
            rates = running.rates(variants, **length(results.tiny))
            for count in counts:
                # A clean module trains one member at a time, so its rate stands beside every number of members.
                beside = {label: rate for label, rate in rates.items() if label[1] in (None, count)}
                best = max(rate for (variant, _), rate in beside.items() if variant != MACHINE)
                for (variant, own), rate in beside.items():
                    about = {"network": name, "variant": variant, "members": count, "dropout": DROPOUT}
                    ratio = {"ratio": rate / best, "against": "fastest rival"}
                    results.add("rate", rate, "member-steps/s", **about, **ratio)
                    results.add("first step", running.seconds_before[variant, own], "s", **about)


def variants_of(name: str, counts: tuple[int, ...], tiny: bool) -> dict[tuple[str, int | None], Variant]:
    """Return the variants by name and members. They take turns in one run."""
    compiles = shutil.which("g++") and not tiny
    has_jax = all(importlib.util.find_spec(one) for one in ("jax", "optax"))
    variants: dict[tuple[str, int | None], Variant] = {
        (CLEAN, None): Variant("clean_kinds:step", (name, DROPOUT), ours=False)
    }
    if compiles and 1 in counts:
        variants["clean, compiled", None] = Variant("clean_kinds:compiled_step", (name, DROPOUT), ours=False)
    for count in counts:
        variants["vmap", count] = Variant("rivals:vmap_step", (name, count, False), count, ours=False)
        if compiles and count > 1:  # of one member, it is the compiled clean module
            variants["vmap, compiled", count] = Variant("rivals:vmap_step", (name, count, True), count, ours=False)
        if has_jax:
            from benchmarks.rivals_jax import STEPS

            variants["jax", count] = Variant("rivals_jax:steps", (name, count), count * STEPS, ours=False)
        variants[MACHINE, count] = Variant("rivals:machine_step", (name, count), count)
    return variants


def batch_of(shape: Shape, count: int) -> tuple[Tensor, Tensor]:
    """Return inputs and targets (K, B, T)."""
    size = (count, shape.batch, shape.length)
    return torch.randint(shape.inputs, size), torch.randint(shape.classes, size)


def vmap_step(name: str, count: int, compiled: bool) -> Callable[[], None]:
    """Return a step of all members by `torch.func`, with PyTorch's Adam on the stacked parameters."""
    shape = KINDS[name]
    modules = [Network(shape, DROPOUT).train() for _ in range(count)]
    parameters, buffers = torch.func.stack_module_state(modules)  # type: ignore[arg-type]
    inputs, targets = batch_of(shape, count)
    optimizer = torch.optim.Adam(list(parameters.values()), lr=1e-3)

    def loss(values: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        scores = torch.func.functional_call(modules[0], (values, buffers), (x,))
        return functional.cross_entropy(scores.flatten(0, 1), y.flatten())

    gradient = torch.func.vmap(torch.func.grad(loss), randomness="different")
    if compiled:
        from torch import _dynamo

        _dynamo.reset()
        gradient = torch.compile(gradient)

    def step() -> None:
        detached = {key: value.detach() for key, value in parameters.items()}
        for key, value in gradient(detached, inputs, targets).items():
            parameters[key].grad = value
        optimizer.step()

    return step


def machine_step(name: str, count: int) -> Callable[[], None]:
    """Return a step of all members by the engine, from the clean module as it is."""
    shape = KINDS[name]

    def loss(module: torch.nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return functional.cross_entropy(module(batch[0]).flatten(0, 1), batch[1].flatten())

    stack = build_stack(lambda seed: Network(shape, DROPOUT), range(count), Adam(), torch.device("cpu"))
    server, batch = ProgramServer(stack, loss), batch_of(shape, count)
    return lambda: server.steps(stack, [batch]) and None
