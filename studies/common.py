"""Share code between the studies of causes: resumable units, transformers that interventions can change, intervals over seeds.

A study is a folder with `design.yaml` (written before its run), `experiment.py` (`units(size)` and `measure(unit, device)`) and
`analysis.py` (`summarise`, `decide`, `details` and `draw`). `python -m studies.NAME --size tenth` measures the missing units and
analyses all.
"""

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
from torch import Tensor, nn
from torch.nn import functional as F

from rankfall import Band, DataFrame, band

HERE = Path(__file__).parent
Unit = dict[str, Any]
Rows = list[dict[str, Any]]
HOLDS, CONTRADICTED, UNDECIDED = "holds", "contradicted", "undecided"


# --- running a study


def main(package: str) -> None:
    """Run the study of this package: measure its missing units, then write its table, verdicts and figure."""
    name = package.rpartition(".")[2]
    design = read_design(name)
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=design["question"])
    parser.add_argument("--size", choices=("tiny", "tenth", "full"), default="tenth", help="tiny: a test of the code")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results/studies") / name)
    parser.add_argument("--limit", type=float, default=math.inf, help="start no unit after this many minutes")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    args = parser.parse_args()
    units = import_module(f"{package}.experiment").units(args.size)
    write_results(name, run_units(name, units, args.out, args.device, args.limit, args.jobs), args.out)


def run_units(
    name: str, units: list[Unit], out: Path, device: str = "cpu", limit: float = math.inf, jobs: int = 1
) -> DataFrame:
    """Measure the units that have no file, and return the rows of all units.

    A file is named by a digest of its unit and of the study's code, so a change of either measures the unit again.
    """
    (out / "units").mkdir(parents=True, exist_ok=True)
    code = b"".join(path.read_bytes() for path in (HERE / "common.py", HERE / name / "experiment.py"))
    digests = [hashlib.sha256(json.dumps(unit, sort_keys=True).encode() + code).hexdigest()[:16] for unit in units]
    files = [out / "units" / f"{digest}.json" for digest in digests]
    run = partial(run_unit, name, device, time.time() + 60 * limit)
    if jobs == 1:
        for unit, file in zip(units, files, strict=True):
            run(unit, file)
    else:
        with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
            list(pool.map(run, units, files))
    if missing := sum(not file.exists() for file in files):
        print(f"{name}: {missing} of {len(units)} units are left for the next run")
    return pd.DataFrame([row for file in files if file.exists() for row in json.loads(file.read_text())])


def run_unit(name: str, device: str, until: float, unit: Unit, file: Path) -> None:
    """Measure a unit and write its rows, unless they are written or the time is over."""
    start = time.time()
    if not file.exists() and start < until:
        rows = import_module(f"studies.{name}.experiment").measure(unit, device)
        # renamed when complete, so that an interrupted run leaves no half of a file
        partial_file = file.with_suffix(f".{os.getpid()}")
        partial_file.write_text(json.dumps([unit | row for row in rows]))
        partial_file.rename(file)
        print(
            f"{name}: {', '.join(f'{key} {value}' for key, value in unit.items())}: {time.time() - start:.1f} s",
            flush=True,
        )


def write_results(name: str, table: DataFrame, out: Path) -> None:
    """Write the table of the analysis, its verdicts, the tables that its page quotes, and its figure."""
    analysis, design = import_module(f"studies.{name}.analysis"), read_design(name)
    summary = round_numbers(analysis.summarise(table))
    verdicts = decide(name, summary)
    summary.to_csv(out / f"{name}.csv", index=False)
    verdicts.to_csv(out / f"{name}_verdicts.csv", index=False)
    figure = analysis.draw(summary, design["thresholds"])
    figure.savefig(out / f"{name}.png", dpi=130, bbox_inches="tight")
    print(verdicts.drop(columns="statement").to_string(index=False))
    for title, details in analysis.details(summary, design["thresholds"]).items():
        details.to_csv(out / f"{name}_{title}.csv", index=False)
        print(f"\n{title}\n{details.to_string(index=False)}")


def decide(name: str, summary: DataFrame) -> DataFrame:
    """Return a row for each statement of a study: key, verdict, number with its interval, how many values these are from, and words."""
    analysis, design = import_module(f"studies.{name}.analysis"), read_design(name)
    rows = [
        {"key": key, "verdict": verdict, **(mean.fields() if mean else {}), "statement": design["statements"][key]}
        for key, (verdict, mean) in analysis.decide(summary, design["thresholds"]).items()
    ]
    return round_numbers(pd.DataFrame(rows).rename(columns={"seeds": "count"}))


@cache
def read_design(name: str) -> dict[str, Any]:
    design: dict[str, Any] = yaml.safe_load((HERE / name / "design.yaml").read_text())
    return design


def round_numbers(table: DataFrame) -> DataFrame:
    """Round to five digits, as in committed tables, so that verdicts follow from the committed table."""
    return table.map(lambda x: float(f"{x:.5g}") if isinstance(x, float) else x)


# --- intervals


Answer = tuple[str, Band | None]  # a verdict, and the number that decides it with its interval


def above(values: Iterable[float], least: float) -> Answer:
    """Decide whether the mean lies above a threshold, by its whole interval (Student's t)."""
    values = [x for x in values if math.isfinite(x)]
    if len(values) < 2:
        return UNDECIDED, None
    return by_band(band(values), least)


def by_band(interval: Band, least: float) -> Answer:
    """Decide whether a number lies above a threshold, by its whole interval."""
    return (HOLDS if interval.low > least else CONTRADICTED if interval.high < least else UNDECIDED), interval


def below(values: Iterable[float], most: float) -> Answer:
    """Decide whether the mean lies below a threshold."""
    verdict, negated = above([-x for x in values], -most)
    return verdict, negated and Band(-negated.mean, -negated.high, -negated.low, negated.seeds)


def between(values: Iterable[float], low: float, high: float) -> Answer:
    """Decide whether the mean lies between two thresholds."""
    values = list(values)
    (over, interval), (under, _) = above(values, low), below(values, high)
    return (CONTRADICTED if CONTRADICTED in (over, under) else HOLDS if over == under == HOLDS else UNDECIDED), interval


def both(first: Answer, second: Answer) -> Answer:
    """Join two parts of a statement: contradicted if a part is, and it holds if both do. The number is that of the part that decides."""
    return min(first, second, key=lambda answer: (CONTRADICTED, UNDECIDED, HOLDS).index(answer[0]))


def wilson(hits: int, count: int) -> Band:
    """Return a share with Wilson's 95% interval."""
    z, p = 1.959964, hits / count
    centre, reach = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return Band(p, (centre - reach) / scale, (centre + reach) / scale, count)


def within_groups(table: DataFrame, x: str, y: str, groups: list[str]) -> Band:
    """Return the correlation of two columns within groups, with Fisher's 95% interval: each column less its mean in the group."""
    table = table[np.isfinite(table[x]) & np.isfinite(table[y])]
    a, b = (table[name] - table.groupby(groups)[name].transform("mean") for name in (x, y))
    free = len(table) - table.groupby(groups).ngroups
    if free < 4 or not (a.abs().max() > 0 and b.abs().max() > 0):
        return Band(math.nan, -1.0, 1.0, max(free, 0))
    r = float((a @ b) / math.sqrt((a @ a) * (b @ b)))
    centre, reach = math.atanh(max(min(r, 0.999999), -0.999999)), 1.959964 / math.sqrt(free - 2)
    return Band(r, math.tanh(centre - reach), math.tanh(centre + reach), free)


# --- a small transformer that interventions can change

# Factors of the mean over tokens of a branch's output and of the deviations from it; factor of the steps of queries and keys; share of
# the scores that is held at a deviation, and this deviation.
KNOBS = ("shared", "apart", "speed", "fixed", "deviation")
# No intervention: branches keep mean and deviations, queries and keys learn at full speed, and scores are free.
FREE = (1.0, 1.0, 1.0, 0.0, 0.0)


class Small(nn.Module):
    """A transformer of one flat list of blocks. `knobs` (5,), in the order of KNOBS, are interventions that may differ between steps."""

    def __init__(
        self, symbols: int, classes: int, length: int, depth: int, width: int = 32, heads: int = 2, **block: Any
    ):
        super().__init__()
        self.token, self.place = nn.Embedding(symbols, width), nn.Parameter(torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads, **block) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, tokens: Tensor, knobs: Tensor | None = None) -> Tensor:
        x = self.token(tokens) + self.place  # (B, T, D)
        for block in self.blocks:
            x = block(x, knobs)
        scores: Tensor = self.head(self.norm(x))  # (B, T, classes)
        return scores


class Block(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        placement: str = "pre",
        skip: float = 1.0,
        gain: float = 1.0,
        branch: float = 1.0,
        mixing: float = 1.0,
        behind: bool = False,
        after: bool = False,
        around: float = 0.0,
    ) -> None:
        """Draw the weights.

        `placement`: the norms' place, post, pre or peri; `branch`: factor of the output of attention and MLP; `mixing`: another factor of
        attention alone; `behind`, `after`: one more norm without weights behind each branch, or after each addition; `around`: if not 0,
        a skip goes around the block, whose output is multiplied by this.
        """
        super().__init__()
        self.heads, self.placement, self.skip, self.branch, self.mixing = heads, placement, skip, branch, mixing
        self.behind, self.after, self.around = behind, after, around
        self.query, self.key, self.value, self.output = (nn.Parameter(draw(width, width, gain)) for _ in range(4))
        self.first_query, self.first_key = (nn.Parameter(w.detach().clone()) for w in (self.query, self.key))
        self.inner, self.outer = nn.Parameter(draw(width, 2 * width, gain)), nn.Parameter(draw(2 * width, width, gain))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4 if placement == "peri" else 2))

    def forward(self, x: Tensor, knobs: Tensor | None = None) -> Tensor:
        y = self.add(x, lambda h: self.mixing * self.attend(h, knobs), 0, knobs)
        y = self.add(y, lambda h: F.gelu(h @ self.inner) @ self.outer, 1, knobs)
        return x + self.around * y if self.around else y

    def add(self, x: Tensor, branch: Callable[[Tensor], Tensor], number: int, knobs: Tensor | None) -> Tensor:
        norm = self.norms[number]
        y = branch(x if self.placement == "post" else norm(x))  # (B, T, D)
        if knobs is not None:
            mean = y.mean(1, keepdim=True)
            y = knobs[0] * mean + knobs[1] * (y - mean)
        if self.placement == "peri":
            y = self.norms[2 + number](y)
        if self.behind:
            y = unit_size(y)
        x = self.skip * x + self.branch * y if self.skip else self.branch * y
        if self.placement == "post":
            x = norm(x)
        return unit_size(x) if self.after else x

    def attend(self, x: Tensor, knobs: Tensor | None) -> Tensor:
        query: Tensor = self.query
        key: Tensor = self.key
        if knobs is not None:  # steps of queries and keys times knobs[2]: Adam ignores the scale of their gradients
            query, key = (
                first.detach() + knobs[2] * (w - first.detach())
                for w, first in ((query, self.first_query), (key, self.first_key))
            )
        q, k, v = (self.split(x @ weight) for weight in (query, key, self.value))  # (B, H, T, D/H)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # (B, H, T, T)
        if knobs is not None:
            centred = scores - scores.mean(-1, keepdim=True)
            held = knobs[4] * centred * (centred.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
            scores = (1 - knobs[3]) * scores + knobs[3] * held
        mixed = scores.softmax(-1) @ v
        return mixed.transpose(1, 2).flatten(2) @ self.output

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def unit_size(x: Tensor) -> Tensor:
    """Scale rows to mean square 1."""
    return x * (x.square().mean(-1, keepdim=True) + 1e-12).rsqrt()


def draw(rows: int, columns: int, gain: float) -> Tensor:
    return torch.randn(rows, columns) * gain * rows**-0.5


# --- tasks: (B, T) tokens and targets of a step

SYMBOLS, LENGTH, BATCH = 10, 12, 32  # of the alphabet; tokens of a sequence; sequences of a step
MEMORY = 48  # sequences to memorise: a step shows two thirds of them


def sorting(step: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return fresh sequences, and their sorted tokens."""
    tokens = torch.randint(SYMBOLS, (BATCH, LENGTH), generator=generator(1_000_003 * seed + step))
    return tokens, tokens.sort(1).values


def memorization(step: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return a batch of this seed's sequences, and their random labels."""
    tokens, labels = memory(seed)
    chosen = torch.randperm(MEMORY, generator=generator(1_000_003 * seed + step))[:BATCH]
    return tokens[chosen], labels[chosen]


@cache
def memory(seed: int) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(SYMBOLS, (MEMORY, LENGTH), generator=generator(7_000_000 + seed))
    return tokens, torch.randint(2, (MEMORY, LENGTH), generator=generator(8_000_000 + seed))


TASKS = {"sorting": sorting, "memorization": memorization}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def chance(task: str) -> float:
    """Return the accuracy of the best guess from the position alone."""
    if task == "memorization":
        return 0.5
    targets = torch.cat([sorting(step, 99)[1] for step in range(300)])  # (9600, T)
    return float(F.one_hot(targets, SYMBOLS).double().mean(0).amax(-1).mean())


def grade(module: nn.Module, batch: tuple[Tensor, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """Return loss and accuracy of a batch: tokens, targets, and perhaps knobs."""
    tokens, targets, *knobs = batch
    scores = module(tokens, *knobs)
    loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
    return loss, {"accuracy": (scores.argmax(-1) == targets).float().mean()}


def score(accuracy: float, task: str) -> float:
    """Rescale an accuracy so that chance is 0 and perfect is 1; one that is not finite scores 0."""
    return (accuracy - chance(task)) / (1 - chance(task)) if math.isfinite(accuracy) else 0.0
