"""Train the cells of one shard that the store does not have yet, in stacks."""

import argparse
from pathlib import Path

from rankfall.commands import _planned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--task", required=True, help="the task's name in the config")
    parser.add_argument("--shard", required=True, help="the shard, as `rankfall plan` names it")
    parser.add_argument("--out", type=Path, help="table of cells to write when all is done")
    parser.add_argument("--training-out", type=Path, help="table of epochs to write when all is done")


def run(args: argparse.Namespace) -> int:
    from rankfall.commands._shards import Shards, run_job

    place = args.task, args.shard
    own = _planned.plan_job(args, "train", *place, read=lambda written: written.shard(*place))
    cells = own.plan.shard(*place)

    def train(shards: Shards) -> None:
        shards.store.announce(cells)
        shards.train(*place, args.out, args.training_out)

    return run_job(own, [cell.code for cell in cells], train)
