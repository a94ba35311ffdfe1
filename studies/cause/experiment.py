"""Train each architecture under all interventions, from the same weights on the same batches; `watch` reads the arm without any."""

import math
from copy import deepcopy
from itertools import product

import torch
from torch import Tensor

from rankfall import attribution, watch
from studies.common import FREE, TASKS, Rows, Small, Unit, chance, grade, score
from thousandfold import Adam, train_many

EARLY, LATE = 2 / 15, 10 / 15  # of the steps: 80 and 400 of 600
# Place in KNOBS -> value. Rank up: nothing that tokens share. Apart: their differences times 3. Rank down: these times 0.1.
UP, APART, DOWN = {0: 0.0}, {1: 3.0}, {1: 0.1}
ARMS: dict[str, tuple[dict[int, float], float]] = {  # changed knobs, and from which share of the steps on
    "base": ({}, 0),
    "sham": ({}, 0),
    "up": (UP, 0),
    "up early": (UP, EARLY),
    "up late": (UP, LATE),
    "apart": (APART, 0),
    "down": (DOWN, 0),
    "down early": (DOWN, EARLY),
    "down late": (DOWN, LATE),
    "frozen": ({2: 0.0}, 0),
    "faster": ({2: 3.0}, 0),
    "fast": ({2: 10.0}, 0),
    "entropy high": ({3: 1.0, 4: 0.5}, 0),
    "entropy low": ({3: 1.0, 4: 2.0}, 0),
}
NAMES, SEEDS = list(ARMS), 3
RATE = 2e-3  # learning rate
LOGGED = 50  # steps: numbers are read after 1, 50, 100 and all steps
LAST = 20  # steps whose mean accuracy is the score
COLUMNS = ("residual", "entropy", "gradient_queries", "gradient_keys")


def units(size: str) -> list[Unit]:
    """Return one unit for each architecture x task."""
    steps = {"tiny": 60, "tenth": 300, "full": 600}[size]
    gains = (1.0, 2.5)
    if size == "tiny":
        designs = [("pre", 1.0, 2, 1.0)]
    elif size == "tenth":
        designs = list(product(("post", "pre"), (1.0, 0.0), (4, 8), (1.0,)))
        designs += [("peri", 1.0, 4, 1.0), ("peri", 1.0, 8, 1.0), ("post", 1.0, 8, 2.5), ("pre", 1.0, 8, 2.5)]
    else:
        designs = list(product(("post", "pre", "peri"), (1.0, 0.0), (2, 6, 12), gains))
        designs += [("post", 0.5, 6, 1.0), ("pre", 0.5, 6, 1.0), ("post", 0.5, 12, 1.0), ("pre", 0.5, 12, 1.0)]
    return [
        {"task": task, "placement": placement, "skip": skip, "depth": depth, "gain": gain, "steps": steps}
        for placement, skip, depth, gain in sorted(designs, key=lambda design: design[2])
        for task in TASKS
    ]


def measure(unit: Unit, device: str) -> Rows:
    """Train a member for each arm x seed, all at once, and return a row for each."""
    task, steps = unit["task"], unit["steps"]

    def build(member: int) -> Small:
        torch.manual_seed(member % SEEDS)
        return make(unit)

    def batches(step: int, member: int) -> tuple[Tensor, Tensor, Tensor]:
        arm, seed = NAMES[member // SEEDS], member % SEEDS
        changed, begins = ARMS[arm]
        knobs = list(FREE)
        if step >= round(begins * steps):
            for knob, value in changed.items():
                knobs[knob] = value
        shown = step + 500_000 if arm == "sham" else step  # sham: no intervention, other batches
        return (*TASKS[task](shown, seed), torch.tensor(knobs))

    members = range(len(NAMES) * SEEDS)
    logs: Rows = []
    accuracy: list[Tensor] = []
    state, done = None, 0
    while done < steps:
        until = min(1 if done == 0 else done - done % LOGGED + LOGGED, steps)
        result = train_many(
            build,
            grade,
            batches,
            optimizer=Adam(lr=RATE, clip=1.0),
            seeds=members,
            steps=until,
            device=device,
            resume=state,
        )
        state, done = result.state, until
        accuracy.append(result.metrics["accuracy"])  # (steps, members)
        if done in (1, LOGGED, 2 * LOGGED) or done == steps:
            for seed in range(SEEDS):
                logs.append({"seed": seed, "step": done} | look(result.modules[seed], batches(done, seed)))
    last = torch.cat(accuracy)[-LAST:].mean(0).tolist()  # (members,)
    diverged = result.diverged
    rows = [
        {
            "arm": NAMES[member // SEEDS],
            "seed": member % SEEDS,
            "score": 0.0 if diverged[member] is not None else score(last[member], task),
            "diverged": diverged[member] is not None,
        }
        for member in members
    ]
    for row in rows:
        for log in logs:
            if row["arm"] == "base" and log["seed"] == row["seed"]:
                when = "first" if log["step"] == 1 else "last" if log["step"] == steps else f"step_{log['step']}"
                row |= {f"{name}_{when}": log[name] for name in log.keys() - {"seed", "step"}}
    return [row | {"engine": result.engine, "chance": chance(task)} for row in rows]


def make(unit: Unit) -> Small:
    parts = {name: unit[name] for name in ("placement", "skip", "gain")}
    return Small(10, 10 if unit["task"] == "sorting" else 2, 12, unit["depth"], **parts)


def look(module: Small, batch: tuple[Tensor, ...]) -> dict[str, float]:
    """Return what `watch` reads in a step, and a token's share in its own state, at the last layer; of gradients the norm over layers."""
    rows: list[dict[str, float]] = []
    # Residuals of failing networks lie below the rounding of float32.
    module = deepcopy(module).double().requires_grad_(True)
    batch = (*batch[:2], batch[2].double())
    with watch(module, every=1, to=rows.extend, alarms=False) as watcher:
        grade(module, batch)[0].backward()
        watcher.step()
    layers = [row for row in rows if row["layer"] > 0]
    numbers = {
        name: norm_of(layers, name) if name.startswith("gradient") else number(layers[-1][name]) for name in COLUMNS
    }
    with torch.no_grad():
        tokens = module.token(batch[0][:2]) + module.place
    shares = attribution(torch.nn.Sequential(*module.blocks), tokens, tokens=4)
    return numbers | {"own": number(shares.own[-1])}


def norm_of(layers: Rows, name: str) -> float:
    return math.sqrt(sum(number(row[name]) ** 2 for row in layers))


def number(value: float | None) -> float:
    return math.nan if value is None else float(value)
