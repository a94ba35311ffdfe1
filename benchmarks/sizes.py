"""Measure what a model of some size costs, streamed and whole: processor time and peak memory, as a table of docs/models.md.

    python -m benchmarks.sizes                     # up to a billion weights: ten minutes on a core
    python -m benchmarks.sizes --only 6.7          # one size, in billions; 6.7 is that of Llama 2 7B, streamed alone

Each row is a process that runs `rankfall measure model llama` at initialisation, in float32 on one thread, on 2 samples of 64 tokens.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

SAMPLES, LENGTH = 2, 64  # texts, and tokens of each
WHOLE_UP_TO = 1.5  # billions of weights: larger models are streamed alone


@dataclass(frozen=True)
class Size:
    """The sizes of a model like Llama."""

    layers: int
    width: int
    inner: int
    vocabulary: int = 32000

    @property
    def weights(self) -> float:
        """Return billions of weights: four maps of attention and three of the MLP per layer, and the embedding, without norms."""
        return (self.layers * (4 * self.width**2 + 3 * self.width * self.inner) + self.vocabulary * self.width) / 1e9

    def command(self, streamed: bool, out: str) -> list[str]:
        """Return the command that measures a model of this size."""
        settings = {
            "num_hidden_layers": self.layers,
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "num_attention_heads": self.width // 64,
            "num_key_value_heads": self.width // 64,
            "vocab_size": self.vocabulary,
        }
        words = f"-m rankfall.cli measure model llama --phase init --seeds 1 --text zipf --samples {SAMPLES} --length {LENGTH}"
        words += " --dtype float32 --variants transformer" + " --stream" * streamed
        options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        return [sys.executable, *words.split(), "--out", out, *options]


SIZES = (Size(6, 512, 1408), Size(12, 768, 2048), Size(24, 1024, 2816), Size(24, 2048, 5504), Size(32, 4096, 11008))


def measure_cost(size: Size, streamed: bool) -> tuple[float, float]:
    """Return processor seconds and GB."""
    with tempfile.TemporaryDirectory() as out:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(size.command(streamed, out), env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"error: {' '.join(process.args)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=float, metavar="BILLIONS", help="the size that is nearest to this")
    args = parser.parse_args()
    sizes = [size for size in SIZES if size.weights < WHOLE_UP_TO]
    if args.only is not None:
        sizes = [min(SIZES, key=lambda size: abs(size.weights - args.only))]
    print("| weights | layers x width | | processor time | peak memory |\n|---|---|---|---|---|")
    for size in sizes:
        weights = f"{size.weights:.1f} billion" if size.weights >= 0.95 else f"{1000 * size.weights:.0f} million"
        for streamed in (False, True) if size.weights < WHOLE_UP_TO else (True,):
            seconds, memory = measure_cost(size, streamed)
            shown = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
            kind = "streamed" if streamed else "whole"
            print(f"| {weights} | {size.layers} x {size.width} | {kind} | {shown} | {memory:.1f} GB |", flush=True)


if __name__ == "__main__":
    main()
