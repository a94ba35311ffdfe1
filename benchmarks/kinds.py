"""Other kinds of attention, norm and normaliser: member-steps a second of the machine, alone and stacked, beside two processes of a clean
module of the same network (`clean_kinds.py`), and of that module compiled by PyTorch, where there is a compiler of C++. What it takes to
compile is a row of its own: seconds until the first step was taken.
"""

import math
import shutil

from benchmarks.clean_kinds import KINDS
from benchmarks.limits import Limits
from benchmarks.record import Results
from benchmarks.steps import CLEAN, COMPILED, STACK, kind, length, members
from benchmarks.workers import Variant, Workers, workers


def measure(results: Results) -> None:
    with workers() as running:
        limits = Limits.measured(running, results.tiny)
        results.add("arithmetic", limits.arithmetic / 1e9, "GFLOP/s", variant="product of matrices")
        for name in list(KINDS)[:1] if results.tiny else KINDS:
            for dropout in (0.0, 0.1):
                beside_clean(results, running, name, dropout)


def beside_clean(results: Results, running: Workers, name: str, dropout: float) -> None:
    variants = {CLEAN: Variant("clean_kinds:step", (name, dropout), ours=False)}
    if shutil.which("g++") and not results.tiny:
        variants[COMPILED] = Variant("clean_kinds:compiled_step", (name, dropout), ours=False)
    for count in (1, 2 if results.tiny else STACK):
        variants[f"machine, {count}"] = Variant("machine:step", (name, count, dropout), count)
    rates = running.rates(variants, **length(results.tiny))
    for label, rate in rates.items():
        results.add(
            "rate", rate, "member-steps/s", network=name, variant=kind(label), members=members(label), dropout=dropout,
            ratio=rate / rates[CLEAN], against=CLEAN,
        )  # fmt: skip
        results.add(
            "first step", running.seconds_before[label], "s", network=name, variant=kind(label), members=members(label), dropout=dropout
        )  # fmt: skip
    if COMPILED in rates:
        steps = pays_from(
            running.seconds_before[COMPILED] - running.seconds_before[CLEAN], rates[COMPILED], rates[CLEAN]
        )
        results.add("pays from", steps, "steps", network=name, variant=COMPILED, members=1, dropout=dropout)


def pays_from(seconds: float, rate: float, other: float) -> float:
    """Steps of one network from which on it is worth so many seconds before the first; the rates are of two processes."""
    saved = 2 / other - 2 / rate
    return seconds / saved if saved > 0 else math.inf
