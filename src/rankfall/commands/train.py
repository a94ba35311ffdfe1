"""Train the cells of one shard in stacks, except those that the store has already."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--task", required=True, help="the task's name in the config")
    parser.add_argument("--shard", required=True, help="the shard, as `rankfall plan` names it")
    parser.add_argument("--out", type=Path, help="table of cells to write when all is done")
    parser.add_argument("--training-out", type=Path, help="table of epochs to write when all is done")


def run(args: argparse.Namespace) -> int:
    from rankfall.run.guards.unchanged import prove_code

    place = args.task, args.shard
    own = _planned.make_plan(args, lambda written: written.shard(*place), lambda said: said.train(*place))
    cells = own.plan.shard(args.task, args.shard)
    with prove_code((cell.code for cell in cells), own.plan.texts):
        return train_shard(args, own, cells)


def train_shard(args: argparse.Namespace, own: _planned.Planned, cells: "list[Cell]") -> int:
    from rankfall.commands._shards import Shards
    from rankfall.run.jobs.engine import INTERRUPTED, Interrupted, Settings
    from rankfall.run.store import Store
    from rankfall.train.device import prepare

    made = own.check(own.fingerprints.train(args.task, args.shard), f"train {args.task} {args.shard}")
    store = Store(own.results / "store")
    store.announce(cells)
    compute = own.plan.config.compute
    settings = Settings(prepare(compute.device, compute.threads), compute.stack, compute.checkpoint_seconds)
    try:
        Shards(own, store, settings).train(args.task, args.shard, made, args.out, args.training_out)
    except Interrupted as reason:
        print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
        return INTERRUPTED
    return 0
