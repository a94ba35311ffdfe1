"""Compare the engine with what a careful user would choose, on eight kinds of networks with dropout.

    make bench ARGS=rivals                    # 1, 16 and 64 members; compiling takes most of an hour
    make bench ARGS='rivals --members 16'     # without the compiled clean module, which stands beside 1 member

In two processes of one thread each: the clean module (`clean.py`), the same by `torch.compile`, `torch.func.vmap` over members with and
without `torch.compile`, JAX (`jit` of a `scan` of steps of `vmap`, `rivals_jax.py`), and the engine on the clean module. The engine's extra
`bench` installs JAX and optax. Without them, there are no rows of JAX.
"""

import importlib.util
import shutil
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from thousandfold import Adam
from thousandfold.servers import ProgramServer
from thousandfold.train import build_stack

from .clean import KINDS, Network, Shape, compile_anew, make_step
from .record import Results
from .workers import Variant, Workers

COUNTS, DROPOUT = (1, 16, 64), 0.1
CLEAN, ENGINE = "clean", "engine"


def measure(results: Results) -> None:
    counts = (2,) if results.tiny else results.members or COUNTS
    with Workers() as workers:
        for name in list(KINDS)[:1] if results.tiny else KINDS:
            rates = workers.rates(variants_of(name, counts, results.tiny), results.tiny)
            for count in counts:
                # A clean module trains one member at a time, so its rate stands beside every number of members.
                compared = {label: rate for label, rate in rates.items() if label[1] in (None, count)}
                best = max(rate for (variant, _), rate in compared.items() if variant != ENGINE)
                for label, rate in compared.items():
                    about = {"network": name, "variant": label[0], "members": count, "dropout": DROPOUT}
                    results.add("rate", rate, "member-steps/s", **about, ratio=rate / best, against="fastest rival")
                    results.add("first step", workers.first_step[label], "s", **about)


def variants_of(name: str, counts: tuple[int, ...], tiny: bool) -> dict[tuple[str, int | None], Variant]:
    """Return the variants by name and members."""
    compiles = shutil.which("g++") and not tiny
    has_jax = all(importlib.util.find_spec(package) for package in ("jax", "optax"))
    variants: dict[tuple[str, int | None], Variant] = {(CLEAN, None): Variant(partial(make_step, name, DROPOUT))}
    if compiles and 1 in counts:
        variants["clean, compiled", None] = Variant(partial(make_step, name, DROPOUT, compiled=True))
    for count in counts:
        variants["vmap", count] = Variant(partial(vmap_step, name, count), count)
        if compiles and count > 1:  # with one member, it is the compiled clean module
            variants["vmap, compiled", count] = Variant(partial(vmap_step, name, count, compiled=True), count)
        if has_jax:
            from .rivals_jax import STEPS, jax_steps

            variants["jax", count] = Variant(partial(jax_steps, name, count, DROPOUT), count * STEPS)
        variants[ENGINE, count] = Variant(partial(engine_step, name, count), count)
    return variants


def draw_batch(shape: Shape, count: int) -> tuple[Tensor, Tensor]:
    """Return inputs and targets (K, B, T)."""
    size = (count, shape.batch, shape.length)
    return torch.randint(shape.inputs, size), torch.randint(shape.classes, size)


def vmap_step(name: str, count: int, compiled: bool = False) -> Callable[[], None]:
    """Return a step of all members by `torch.func`, with PyTorch's Adam on the stacked parameters."""
    shape = KINDS[name]
    modules = [Network(shape, DROPOUT).train() for _ in range(count)]
    parameters, buffers = torch.func.stack_module_state(modules)  # type: ignore[arg-type]
    inputs, targets = draw_batch(shape, count)
    optimizer = torch.optim.Adam(list(parameters.values()), lr=1e-3)

    def loss(values: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        scores = torch.func.functional_call(modules[0], (values, buffers), (x,))
        return functional.cross_entropy(scores.flatten(0, 1), y.flatten())

    gradient = torch.func.vmap(torch.func.grad(loss), randomness="different")
    if compiled:
        gradient = compile_anew(gradient)

    def step() -> None:
        detached = {key: value.detach() for key, value in parameters.items()}
        for key, value in gradient(detached, inputs, targets).items():
            parameters[key].grad = value
        optimizer.step()

    return step


def engine_step(name: str, count: int) -> Callable[[], None]:
    """Return a step of all members by the engine, from the clean module as it is."""
    shape = KINDS[name]

    def loss(module: torch.nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return functional.cross_entropy(module(batch[0]).flatten(0, 1), batch[1].flatten())

    stack = build_stack(lambda seed: Network(shape, DROPOUT), range(count), Adam(), torch.device("cpu"))
    server, batch = ProgramServer(stack, loss), draw_batch(shape, count)
    return lambda: server.steps(stack, [batch]) and None
