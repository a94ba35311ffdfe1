"""What it costs to measure a model of some size, streamed and whole: processor time and peak memory, as a table of docs/models.md.

    python -m benchmarks.sizes                     # up to a billion weights: ten minutes on a core
    python -m benchmarks.sizes --only 6.7          # one size, in billions; 6.7 is that of Llama 2 7B, streamed alone

Every line is a process of its own, `rankfall measure model llama` at initialisation with the sizes of the line, in float32 on one thread,
which measures the whole model on 2 samples of 64 tokens. Lines that are measured replace those of the table; others stay.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- sizes -->", "<!-- /sizes -->"
HEAD = ("| weights | layers x width | | processor time | peak memory |", "|---|---|---|---|---|")
SAMPLES, LENGTH = 2, 64
WHOLE_UP_TO = 1.5  # billions of weights: beyond, streamed alone


@dataclass(frozen=True)
class Size:
    """A model like Llama."""

    layers: int
    width: int
    inner: int
    vocabulary: int = 32000

    @property
    def weights(self) -> float:
        """In billions: four maps of attention and three of the MLP a layer, and the embedding; norms are too few to count."""
        return (self.layers * (4 * self.width**2 + 3 * self.width * self.inner) + self.vocabulary * self.width) / 1e9

    @property
    def name(self) -> str:
        return f"{self.weights:.1f} billion" if self.weights >= 0.95 else f"{1000 * self.weights:.0f} million"

    def settings(self) -> list[str]:
        values = {
            "num_hidden_layers": self.layers,
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "num_attention_heads": self.width // 64,
            "num_key_value_heads": self.width // 64,
            "vocab_size": self.vocabulary,
        }
        return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


SIZES = (Size(6, 512, 1408), Size(12, 768, 2048), Size(24, 1024, 2816), Size(24, 2048, 5504), Size(32, 4096, 11008))


def command(size: Size, streamed: bool, out: str) -> list[str]:
    words = [sys.executable, "-m", "rankfall.cli", "measure", "model", "llama", "--phase", "init", "--seeds", "1"]
    words += ["--text", "zipf", "--samples", str(SAMPLES), "--length", str(LENGTH), "--dtype", "float32"]
    words += ["--variants", "transformer", "--out", out, *size.settings()]
    return words + ["--stream"] * streamed


def cost(size: Size, streamed: bool, limit: float) -> tuple[float, float] | None:
    """Processor seconds, which other work on the machine hardly changes, and GB; None where it failed or took longer than the limit."""
    with tempfile.TemporaryDirectory() as out:
        started = time.monotonic()
        process = subprocess.Popen(
            command(size, streamed, out), env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL
        )
        while True:
            number, status, used = os.wait4(process.pid, os.WNOHANG)
            took = time.monotonic() - started
            if number:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            if took > limit:
                process.kill()
            time.sleep(0.05)
    return (used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9) if process.returncode == 0 else None


def line(size: Size, streamed: bool, found: tuple[float, float]) -> str:
    took, memory = found
    shown = f"{took:.0f} s" if took < 120 else f"{took / 60:.0f} min"
    how = "streamed" if streamed else "whole"
    return f"| {size.name} | {size.layers} x {size.width} | {how} | {shown} | {memory:.1f} GB |"


def merged(text: str, lines: list[str]) -> str:
    """The page with these lines in its table, in the order of sizes."""
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    before = [one for one in text[begin:end].splitlines() if one.startswith("| ") and one != HEAD[0]]
    by_name = {cells(one): one for one in [*before, *lines]}
    order = [(size.name, how) for size in SIZES for how in ("whole", "streamed")]
    kept = [by_name[one] for one in order if one in by_name]
    return text[:begin] + "\n" + "\n".join([*HEAD, *kept]) + "\n" + text[end:]


def cells(one: str) -> tuple[str, str]:
    found = [cell.strip() for cell in re.split(r"\|", one)[1:-1]]
    return found[0], found[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=float, metavar="BILLIONS", help="the size that is nearest to this")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a line is given up")
    args = parser.parse_args()
    chosen = [size for size in SIZES if size.weights < WHOLE_UP_TO]
    if args.only is not None:
        chosen = [min(SIZES, key=lambda size: abs(size.weights - args.only))]
    for size in chosen:
        for streamed in (False, True) if size.weights < WHOLE_UP_TO else (True,):
            found = cost(size, streamed, args.limit)
            if found is None:
                print(f"{size.name}, {'streamed' if streamed else 'whole'}: failed, or took more than {args.limit:g} s")
                continue
            made = line(size, streamed, found)
            print(made)
            PAGE.write_text(merged(PAGE.read_text(), [made]))


if __name__ == "__main__":
    main()
