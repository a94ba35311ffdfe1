"""Which model types of the transformers library are measured: each one small, in a process of its own with limits of time and memory.

    python -m benchmarks.census                      # all types, to results/bench/census.csv; half an hour on a core
    python -m benchmarks.census --types mamba rwkv   # some

A row a type: "measured" with what was found, "refused" with the line that says why, "no stream" where there is no stream of token
vectors, "not built" where the small model, or inputs for it, cannot be made.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COLUMNS = ("type", "outcome", "streams", "layers", "width", "found", "last", "seconds", "reason")
LIMIT_BYTES = 6 * 2**30


def one(kind: str, seed: int = 0) -> dict[str, Any]:
    """The row of a type."""
    import torch
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    from rankfall.api.modules import of_examined
    from rankfall.check.library import small_model
    from rankfall.errors import RankfallError
    from rankfall.models.families.example import example_inputs
    from rankfall.models.modules.examine import examine
    from rankfall.models.modules.given import NoStream

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    row: dict[str, Any] = {"type": kind}
    if kind not in MODEL_MAPPING_NAMES:
        return row | {
            "outcome": "no model",
            "reason": "the library has a configuration of this name, and no model that AutoModel makes",
        }
    try:
        model, config = small_model(kind, {}, seed)
        inputs = example_inputs(model, config, seed=seed)
    except RankfallError as error:
        lacking = "requires the" in str(error) and "library" in str(error)
        return row | {"outcome": "no package" if lacking else "not built", "reason": str(error)}
    blocks = None
    try:
        try:
            found = examine(model, inputs, name=kind)
        except RankfallError as error:
            if "changes its width" not in str(error):
                raise
            blocks = str(error).rpartition("for example '")[2].partition("' to '")
            first, last = blocks[0], blocks[2].rstrip("'")
            names = [name for name, _ in model.named_modules()]
            stem = first.rpartition(".")[0]
            chosen = [name for name in names if name.rpartition(".")[0] == stem and first <= name <= last]
            found = examine(model, inputs, name=kind, blocks=chosen)
            row["reason"] = f"a pyramid: one width of it, {first} to {last}"
        values = of_examined(found, "composite")
    except NoStream as error:
        return row | {"outcome": "no stream", "reason": str(error)}
    except RankfallError as error:
        return row | {"outcome": "refused", "reason": str(error)}
    flow = found.flows[0]
    last = next(value for name, value in values.items() if name.endswith("transformer"))[-1]
    return row | {
        "outcome": "measured", "streams": len(found.flows), "layers": flow.depth, "width": flow.width, "found": flow.summary(),
        "last": last,
    }  # fmt: skip


def limited(kind: str, seconds: int) -> dict[str, Any]:
    """The row of a type, from a fork of this process."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        child = os.fork()
        if child == 0:
            try:
                resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
                signal.alarm(4 * seconds)
                row = one(kind)
            except BaseException as error:
                row = {
                    "type": kind,
                    "outcome": "fails",
                    "reason": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
                }
            Path(file.name).write_text(json.dumps(row))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        text = Path(file.name).read_text()
    row = (
        json.loads(text)
        if text
        else {"type": kind, "outcome": "fails", "reason": f"ended by signal {status & 127}: time or memory"}
    )
    return row | {"seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    sys.path[:0] = [str(ROOT / "src")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.census", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--types", nargs="+", help="default: all that the library registers")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench" / "census.csv")
    parser.add_argument("--seconds", type=int, default=60, help="of a processor, for each")
    args = parser.parse_args()
    from transformers import CONFIG_MAPPING

    import rankfall.api.modules
    import rankfall.check.report  # noqa: F401  # before the forks

    one("bert")  # what every model needs is imported once, before the forks

    args.out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with args.out.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for kind in args.types or sorted(CONFIG_MAPPING.keys()):
            rows.append(limited(kind, args.seconds))
            table.writerow(rows[-1])
            file.flush()
    print(counted(rows))


def counted(rows: list[dict[str, Any]]) -> str:
    """How many of each outcome, and the share of those that have a model with a stream of token vectors."""
    tally = Counter(row["outcome"] for row in rows)
    whole = len(rows) - tally["no model"] - tally["no stream"] - tally["no package"]
    share = f"; {tally['measured'] / whole:.1%} of {whole} with a stream of token vectors" if whole else ""
    return ", ".join(f"{count} {name}" for name, count in tally.most_common()) + share


if __name__ == "__main__":
    main()
