"""Member-steps a second: every network of the default run, alone and stacked, by each engine that serves it; and three networks, with
dropout and without, beside a clean module, of which a careful user runs two processes of one thread each, also compiled by PyTorch where
there is a compiler.
"""

import shutil

from benchmarks import clean, networks
from benchmarks.limits import Limits, work
from benchmarks.record import Results
from benchmarks.workers import Variant, Workers, workers

STACK = 16
CLEAN = "clean module, two processes"
COMPILED = "clean module compiled, two processes"


def measure(results: Results) -> None:
    with workers() as running:
        limits = Limits.measured(running, results.tiny)
        results.add("arithmetic", limits.arithmetic / 1e9, "GFLOP/s", variant="product of matrices")
        results.add("copy", limits.copied / 1e9, "GB/s", variant="copy, read and written")
        for short in clean.NETWORKS:
            for dropout in (0.0, 0.1):
                beside_clean(results, running, limits, short, dropout)
        names = list(networks.default())
        for name in names[:1] if results.tiny else names:
            alone_and_stacked(results, running, limits, name)


def beside_clean(results: Results, running: Workers, limits: Limits, short: str, dropout: float) -> None:
    name = networks.HEADLINES[short]
    variants = {CLEAN: Variant("clean:step", (short, dropout), ours=False)}
    if shutil.which("g++") and not clean.NETWORKS[short].masked and not results.tiny:
        variants[COMPILED] = Variant("clean:compiled_step", (short, dropout), ours=False)
    variants |= ours(name, results.tiny, dropout)
    rates = running.rates(variants, **length(results.tiny))
    counted = work(name)
    for label, rate in rates.items():
        results.add(
            "rate", rate, "member-steps/s", network=short, variant=kind(label), members=members(label), dropout=dropout,
            ratio=rate / rates[CLEAN], against=CLEAN, **limits.shares(counted, rate),
        )  # fmt: skip


def alone_and_stacked(results: Results, running: Workers, limits: Limits, name: str) -> None:
    rates = running.rates(ours(name, results.tiny), **length(results.tiny, 0.15))
    counted, first = work(name), rates["plain, 1"]
    for label, rate in rates.items():
        results.add(
            "rate", rate, "member-steps/s", network=name, variant=kind(label), members=members(label),
            dropout=networks.cell_of(name).training.dropout, ratio=rate / first, against="plain, alone", **limits.shares(counted, rate),
        )  # fmt: skip


def ours(name: networks.Name, tiny: bool, dropout: float | None = None) -> dict[str, Variant]:
    """Alone and stacked, by each engine; what is counted are steps of members."""
    return {
        f"{engine}, {count}": Variant(f"networks:{engine}_step", (name, count, dropout), count)
        for engine in networks.engines(name)
        for count in (1, 2 if tiny else STACK)
    }


def kind(label: str) -> str:
    return label if label in (CLEAN, COMPILED) else label.partition(",")[0]


def members(label: str) -> int:
    return 1 if label in (CLEAN, COMPILED) else int(label.rpartition(" ")[2])


def length(tiny: bool, seconds: float = 0.3) -> dict[str, float]:
    return {"rounds": 1, "seconds": 0.01} if tiny else {"rounds": 3, "seconds": seconds}
