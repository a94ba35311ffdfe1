"""Other kinds of attention, norm and normaliser: member-steps a second of the machine, alone and stacked, beside two processes of a clean
module of the same network (`clean_kinds.py`), and of that module compiled by PyTorch, where there is a compiler of C++. What it takes to
compile is a row of its own: seconds until the first step was taken, and the steps of one network from which on they pay.
"""

import math
import shutil

from benchmarks.clean_kinds import KINDS
from benchmarks.limits import Limits
from benchmarks.record import Results
from benchmarks.steps import CLEAN, COMPILED, STACK, kind, length, members
from benchmarks.workers import Variant, Workers, workers

ALONE = "machine, 1"


def measure(results: Results) -> None:
    with workers() as running:
        limits = Limits.measured(running, results.tiny)
        results.add("arithmetic", limits.arithmetic / 1e9, "GFLOP/s", variant="product of matrices")
        names = list(KINDS)[:1] if results.tiny else list(KINDS)
        running.rates(
            variants_of(names[0], 0.0, results.tiny), rounds=1, seconds=0.01
        )  # what is imported is no network's
        for name in names:
            for dropout in (0.0, 0.1):
                beside_clean(results, running, name, dropout)


def variants_of(name: str, dropout: float, tiny: bool) -> dict[str, Variant]:
    variants = {CLEAN: Variant("clean_kinds:step", (name, dropout), ours=False)}
    if shutil.which("g++") and not dropout and not tiny:  # it takes a minute or two
        variants[COMPILED] = Variant("clean_kinds:compiled_step", (name, dropout), ours=False)
    for count in (1, 2 if tiny else STACK):
        variants[f"machine, {count}"] = Variant("machine:step", (name, count, dropout), count)
    return variants


def beside_clean(results: Results, running: Workers, name: str, dropout: float) -> None:
    rates = running.rates(variants_of(name, dropout, results.tiny), **length(results.tiny))
    for label, rate in rates.items():
        results.add(
            "rate", rate, "member-steps/s", network=name, variant=kind(label), members=members(label), dropout=dropout,
            ratio=rate / rates[CLEAN], against=CLEAN,
        )  # fmt: skip
        results.add(
            "first step", running.seconds_before[label], "s", network=name, variant=kind(label), members=members(label), dropout=dropout
        )  # fmt: skip
    for label in rates.keys() & {COMPILED, ALONE}:
        seconds = running.seconds_before[label] - running.seconds_before[CLEAN]
        steps = pays_from(seconds, rates[label], rates[CLEAN])
        results.add("pays from", steps, "steps", network=name, variant=kind(label), members=1, dropout=dropout)


def pays_from(seconds: float, rate: float, other: float) -> float:
    """Steps of one network from which on it is worth so many seconds before the first; the rates are of two processes."""
    saved = 2 / other - 2 / rate
    return seconds / saved if saved > 0 else math.inf
