"""Train many copies of a module at once: `train_many` and `explain`."""

import statistics
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from thousandfold.engine import Results
from thousandfold.errors import EngineError, say_if_slow
from thousandfold.graph import Untraceable
from thousandfold.losses import LOSS, Batch, Loss, flatten, unflatten
from thousandfold.optimizers import DIVERGED, Adam, RowOptimizer
from thousandfold.recorder import is_of_user, noting_places
from thousandfold.servers import AutogradServer, ProgramServer, Server
from thousandfold.stack import Stack, factor_of, one_line, seeds_of, whole
from thousandfold.step import Name

Build = Callable[[int], nn.Module]  # seed -> module
CHECKED = 500  # steps from one comparison with autograd to the next, after those at powers of two: under 1% of the time
FAR = 1e-3  # largest relative distance of a gradient by rounding; errors of an operation exceed it
AS_FAR = 4.0  # times autograd's own distance from float64, where a step amplifies rounding
ENGINES = ("program", "stack", "loop")  # fastest first


@dataclass
class TrainedMembers:
    """The result of `train_many`."""

    losses: Tensor  # (steps, K)
    metrics: dict[str, Tensor]  # by name, each (steps, K)
    modules: "Modules"  # modules[k] has the trained weights of member k
    # The step at which a member's loss or gradient was not finite, and from which it is frozen.
    diverged: list[int | None]
    engine: str  # program, stack or loop
    reason: str  # why no faster engine served
    state: dict[str, Tensor] = field(repr=False)  # `resume` of a longer training


class Modules(Sequence[nn.Module]):
    """The trained modules. Each is filled with its weights when it is read."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def __len__(self) -> int:
        return len(self.stack)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self.stack.module(member) for member in range(len(self))[k]]
        return self.stack.module(range(len(self))[k])


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`."""

    engine: str  # program, stack or loop
    reason: str  # what stands in the way of a faster one; empty for the fastest
    where: str  # file and line of the user's code at which it stands, if known
    weights: int  # trained numbers of a member
    seconds: float  # of a step of one member

    def __str__(self) -> str:
        why = f", since {self.reason}" * bool(self.reason) + f" ({self.where})" * bool(self.where)
        return f"{self.engine}{why}; {self.weights} weights, {1e3 * self.seconds:.3g} ms a member-step"


def train_many(
    build: Build,
    loss: Loss,
    batches: Callable[[int, int], Batch],
    *,
    optimizer: RowOptimizer | None = None,
    seeds: Iterable[int] = range(16),
    steps: int,
    device: torch.device | str = "cpu",
    engine: str = "auto",
    resume: dict[str, Tensor] | None = None,
) -> TrainedMembers:
    """Train one module for each seed, each as if it were alone.

    `build(seed)` returns an ordinary module, `loss(module, batch)` a scalar or a scalar and a dictionary of metrics, and
    `batches(step, seed)` the tensors of a member's batch. A member that diverges is frozen with its last finite weights; the others go on.
    `engine` names the one to use: program, stack or loop. `resume` is the state of an earlier result, whose steps are not repeated; `steps`
    counts them.
    """
    steps, listed = whole(steps, "steps"), seeds_of(seeds)
    stack = build_stack(build, listed, Adam() if optimizer is None else optimizer, torch.device(device))
    if resume is not None:
        stack.restore(resume)
    first = stack.step_count
    batch = stacked(batches, first, stack)
    with say_if_slow("tracing the step, and comparing it with autograd"):
        server, reason = choose(stack, loss, batch, engine)
    records: list[Results] = []
    while stack.step_count < steps:  # even if all members are frozen: what one yields does not depend on others
        step, schedule = stack.step_count, stack.optimizer.schedule
        count = min(steps - step, next_check(step) - step, 1 if schedule else server.steps_at_once(len(stack)))
        chunk = [stacked(batches, step + i, stack) for i in range(count)]
        if schedule is not None:
            stack.lr_now = stack.lr * factor_of(schedule, step)
        checked = server.name != "loop" and step > first and step == next_check(step - 1)
        member = (step // CHECKED + step.bit_length()) % len(stack)
        try:
            if checked and (mismatch := difference(server, stack, loss, chunk[0], [member])):
                warnings.warn(f"step {step}: {mismatch}; autograd takes the steps from here", stacklevel=2)
                server, reason = server_of("loop", stack, loss), mismatch
            records += server.steps(stack, chunk)
        except Exception as error:
            raise EngineError(place_in_run(error, stack, loss, step, chunk)) from error
    names = records[0] if records else untrained(server, stack, batch)

    def over_steps(name: Name) -> Tensor:
        return torch.stack([results[name] for results in records]) if records else torch.empty(0, len(stack))

    return TrainedMembers(
        losses=over_steps(LOSS),
        metrics={name: over_steps((kind, name)) for kind, name in names if kind == "metric"},
        modules=Modules(stack),
        diverged=[int(last) if status == DIVERGED else None for status, last in zip(stack.status, stack.last_step)],
        engine=server.name,
        reason=reason,
        state={name: value.detach().clone() for name, value in stack.state().items()},
    )


def explain(build: Build, loss: Loss, batch: Batch, *, device: torch.device | str = "cpu") -> Explanation:
    """Return which engine serves a module and why, and what a step costs. `batch` is that of one member."""
    stack = build_stack(build, [0, 1], Adam(), torch.device(device))  # two, since what differs between members matters
    all_members = unflatten(batch, [torch.stack([x] * len(stack)).to(stack.device) for x in flatten(batch)])
    where: list[str] = []
    with noting_places():
        server, reason = choose(stack, loss, all_members, "auto", where)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        server.steps(stack, [all_members])
        seconds.append((time.perf_counter() - began) / len(stack))
    return Explanation(server.name, reason, "".join(where[:1]), stack.weights.shape[1], statistics.median(seconds))


def build_stack(build: Build, seeds: Sequence[int], optimizer: RowOptimizer, device: torch.device) -> Stack:
    """Build the modules, each from torch's generator at its seed."""
    modules = []
    with torch.random.fork_rng(devices=()):
        for seed in seeds:
            torch.manual_seed(seed)
            try:
                modules.append(build(seed))
            except Exception as error:
                raise EngineError(f"build({seed}): {one_line(error)}") from error
    return Stack(modules, seeds, optimizer, device)


def stacked(batches: Callable[[int, int], Batch], step: int, stack: Stack) -> Batch:
    """Return a batch whose tensors are (K, ...)."""
    member_batches = []
    for seed in stack.seeds:
        try:
            member_batches.append(batches(step, seed))
        except Exception as error:
            raise EngineError(f"batches({step}, {seed}): {one_line(error)}") from error
    forms = [[(tuple(x.shape), x.dtype) for x in flatten(batch)] for batch in member_batches]
    if not forms[0]:
        raise EngineError(f"batches({step}, {stack.seeds[0]}): expected at least one tensor; found none")
    for seed, form in zip(stack.seeds, forms):
        if form != forms[0]:
            shapes_of_both = f"{shapes(forms[0])} for seed {stack.seeds[0]} and {shapes(form)} for seed {seed}"
            raise EngineError(
                f"step {step}: expected batches of the same shapes and formats for all seeds; found {shapes_of_both}"
            )
    tensors = [torch.stack(column).to(stack.device) for column in zip(*map(flatten, member_batches), strict=True)]
    return unflatten(member_batches[0], tensors)


def choose(stack: Stack, loss: Loss, batch: Batch, engine: str, where: list[str] | None = None) -> tuple[Server, str]:
    """Return the fastest server of a step, and why no faster one serves. `where` collects places in the user's code."""
    if engine not in ("auto", *ENGINES):
        raise EngineError(f"expected the engine {', '.join(ENGINES)} or auto; found {engine!r}")
    reasons: list[str] = []
    for name in ENGINES if engine == "auto" else (engine,):
        try:
            server = server_of(name, stack, loss)
            reason = difference(server, stack, loss, batch, range(min(2, len(stack))))
            if not reason:
                return server, "; ".join(reasons)
        except (Untraceable, RuntimeError, NotImplementedError) as error:  # the last two by `vmap`
            if name == "loop":  # the user's own error
                raise
            reason = one_line(error)
            if where is not None:
                where += [error.place] if isinstance(error, Untraceable) and error.place else places_of(error)
        reasons.append(f"{name}: {reason}")
    which = "no engine serves" if engine == "auto" else "this engine does not serve"
    raise EngineError(f"{which} the step: {'; '.join(reasons)}")


def server_of(name: str, stack: Stack, loss: Loss) -> Server:
    if stack.apart and name != "loop":
        raise Untraceable(f"members differ in {stack.apart}, which is no parameter or buffer")
    if name == "program":
        if stack.device.type == "cpu":
            return ProgramServer(stack, loss)
        from thousandfold.gpu.engine import GpuEngine

        return ProgramServer(stack, loss, GpuEngine)
    return AutogradServer(stack, loss, together=name == "stack")


def difference(server: Server, stack: Stack, loss: Loss, batch: Batch, members: Iterable[int]) -> str:
    """Return in what a server differs from autograd for some members, or an empty text. Nothing is trained."""
    chosen, results = list(members), untrained(server, stack, batch)
    gradients = stack.grads[chosen].clone()
    with stack.keeping_buffers():
        wanted = AutogradServer(stack, loss, together=False).passes(stack, batch, chosen)
    pairs = {"gradient": (gradients, stack.grads[chosen]), "loss": (results[LOSS][chosen, None], wanted[LOSS][:, None])}
    for name, (value, reference) in pairs.items():
        size, away = reference.norm(dim=1), (value - reference).norm(dim=1)
        far = reference.isfinite().all(1) & ~(away <= FAR * size + torch.finfo(size.dtype).eps)
        if far.any() and not is_rounding(stack, loss, batch, chosen, pairs, far):
            return f"its {name} is {float((away / size).max()):.1g} of its size away from autograd's"
    return ""


def is_rounding(
    stack: Stack,
    loss: Loss,
    batch: Batch,
    chosen: list[int],
    pairs: dict[str, tuple[Tensor, Tensor]],
    far: Tensor,
) -> bool:
    """Return whether autograd in float32 is about as far from float64 as the server is, for these members (K,). A step of a network that
    amplifies differences has such gradients."""
    try:
        with stack.keeping_buffers():
            exact = AutogradServer(stack, loss, together=False).passes(stack, batch, chosen, as_double=True)
    except RuntimeError:  # a module that makes tensors in float32
        return False
    precise = {"gradient": stack.grads[chosen].double(), "loss": exact[LOSS][:, None]}
    for name, (value, reference) in pairs.items():
        size, error, usual = (x.norm(dim=1) for x in (precise[name], value - precise[name], reference - precise[name]))
        if (far & ~(error <= AS_FAR * usual + FAR * size)).any():
            return False
    return True


def next_check(step: int) -> int:
    """Return the next step at which results are compared: a power of two, or a multiple of `CHECKED`."""
    return min(2 ** max(step, 0).bit_length(), step + CHECKED - step % CHECKED)


def untrained(server: Server, stack: Stack, batch: Batch) -> Results:
    """Return the results of a step, whose gradients are in `stack.grads`. Nothing else changes."""
    with stack.keeping_buffers():
        return server.passes(stack, batch)


def place_in_run(error: Exception, stack: Stack, loss: Loss, step: int, batches: Sequence[Batch]) -> str:
    """Return the step and the member at which an error occurs, and the error, in one line."""
    single = AutogradServer(stack, loss, together=False)
    for i, batch in enumerate(batches if stack.device.type == "cpu" else ()):  # a GPU's error affects all that follows
        for k, seed in enumerate(stack.seeds):
            try:
                single.passes(stack, batch, [k])
            except Exception as cause:
                return f"step {step + i}, member {k} (seed {seed}): {one_line(cause)}"
    return f"step {step}" + f" to {step + len(batches) - 1}" * (len(batches) > 1) + f": {one_line(error)}"


def shapes(forms: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> str:
    return ", ".join(f"{shape} {dtype}" for shape, dtype in forms) or "no tensor"


def places_of(error: BaseException | None) -> list[str]:
    """Return the files and lines of the user's code in a traceback, innermost first."""
    places = []
    while error is not None:
        frames = reversed(traceback.extract_tb(error.__traceback__))
        places += [f"{frame.filename}, line {frame.lineno}" for frame in frames if is_of_user(frame.filename)]
        error = error.__cause__
    return places
