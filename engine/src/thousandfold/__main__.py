"""`python -m thousandfold profile build.py:build` prints a step of a module by operation. The file also has `loss` and `batches`."""

import argparse
import runpy

import torch

from thousandfold.engine import check_numba
from thousandfold.graph import Untraceable
from thousandfold.optimizers import Adam
from thousandfold.train import build_stack, server_of, stacked


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m thousandfold")
    command = parser.add_subparsers(required=True).add_parser("profile", help="print a step by operation")
    command.add_argument("build", metavar="FILE:NAME", help="a file with this build, with `loss` and with `batches`")
    file, _, name = parser.parse_args().build.partition(":")
    from thousandfold.profile import peak, profile, report
    from thousandfold.servers import ProgramServer

    check_numba()
    names = runpy.run_path(file)
    if missing := [key for key in (name or "build", "loss", "batches") if key not in names]:
        parser.error(f"expected {file} to define {', '.join(missing)}")
    stack = build_stack(names[name or "build"], [0], Adam(), torch.device("cpu"))
    server = server_of("program", stack, names["loss"])
    assert isinstance(server, ProgramServer)
    try:
        work = server.work(stack, stacked(names["batches"], 0, stack), 0)
    except Untraceable as error:
        parser.error(f"no program serves the step: {error}")
    measured = profile(server.engine, stack, work)
    print("\n".join(report(f"{file}:{name}", *measured, peak(stack.weights.dtype))))


if __name__ == "__main__":
    main()
