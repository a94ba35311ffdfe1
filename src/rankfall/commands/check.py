"""Check whether a model collapses: what each layer of a module keeps, which part loses it, and which changes help."""

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


STATUS = (
    "Exit status: 0 if the whole model is measured and no --fail-if holds; 1 if a --fail-if holds; 2 for an error; 3 if blocks lie outside "
    "the stream, the stream is cut, samples touch each other, a skip goes around the layers, or states are not finite."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = STATUS
    parser.add_argument(
        "model",
        help="FILE.py:FUNCTION (the file is run), CONFIG.yaml:ARCHITECTURE, or a name of Hugging Face (bert, gpt2, a folder, minilm)",
    )
    parser.add_argument(
        "--inputs", metavar="FILE.py:NAME", help="an example of its inputs: a tensor, tuple or dict, or a function"
    )
    parser.add_argument(
        "--blocks", nargs="+", metavar="NAME", help="names or classes of the modules that are its layers"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit with status 1 if this holds, e.g. "residual_last < 0.1"',
    )
    parser.add_argument("--small", action="store_true", help="a Hugging Face type at small size: 4 layers, width 32")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change its configuration, e.g. n_layer=6"
    )
    parser.add_argument("--length", type=int, default=32, help="tokens of a sample if inputs are drawn (default: 32)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and inputs that are drawn (default: 0)")
    parser.add_argument("--no-changes", action="store_true", help="do not try changes of the model")


def run(args: argparse.Namespace) -> int:
    from rankfall.check.conditions import condition
    from rankfall.check.report import check
    from rankfall.check.table import text

    conditions = [condition(one) for one in args.fail_if]
    model, inputs, name = load_module(args)
    reports = check(model, inputs, blocks=args.blocks, name=name, changes=not args.no_changes)
    held = [(one, report) for one in conditions for report in reports if one.holds(report) is not False]
    if args.json:
        failed = [{"condition": one.text, "stream": report.stream, "value": one.value(report)} for one, report in held]
        print(json.dumps({"model": name, "streams": [asdict(one) for one in reports], "failed": failed}, indent=2))
    else:
        print(text(reports, name, shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
        for one, report in held:
            value = one.value(report)
            said = "is not known" if value is None else f"it is {value:.4g}"
            print(f"fails: {one.text}{f' ({report.stream})' if report.stream else ''}: {said}")
    return 1 if held else 3 if any(report.findings for report in reports) else 0


def load_module(args: argparse.Namespace) -> "tuple[nn.Module, Any, str]":
    """Return the module, an example of its inputs, and its name."""
    from rankfall.check.source import is_file, module_from_file
    from rankfall.errors import RankfallError

    def say(line: str) -> None:
        print(f"check: {line}", file=sys.stderr)

    if is_file(args.model):
        if args.small or args.set:
            raise RankfallError("--small and --set are for a Hugging Face name; a file builds its own model")
        return module_from_file(args.model, args.inputs, say)
    if args.inputs is not None:
        raise RankfallError("--inputs is for a model from a file; inputs of a named or configured model are drawn")
    file, _, architecture = args.model.rpartition(":")
    if file.endswith((".yaml", ".yml")):
        say(f"builds architecture {architecture} of {file}")
        return of_configuration(file, architecture, args.length, args.seed)
    if args.model.endswith((".yaml", ".yml")):
        raise RankfallError(f"model {args.model!r}: write CONFIG.yaml:ARCHITECTURE")
    from rankfall.check.library import library_model
    from rankfall.commands.model import _parse_setting

    settings = dict(_parse_setting(text) for text in args.set)
    return library_model(args.model, settings, small=args.small, length=args.length, seed=args.seed, say=say)


def of_configuration(file: str, name: str, length: int, seed: int) -> "tuple[nn.Module, Any, str]":
    """Build the untrained network of an architecture; return it with random states (1, 4, T, D) and its name."""
    from dataclasses import replace
    from pathlib import Path

    import torch

    from rankfall.design import Component
    from rankfall.errors import RankfallError, suggest
    from rankfall.nets.network import Shape, build
    from rankfall.random_streams import stream
    from rankfall.run.config.types import parse, read

    known = parse(read(Path(file))).architectures
    if name not in known:
        raise RankfallError(f"{file} has no architecture {name!r}" + suggest(name, known))
    design = replace(known[name], embedding=Component("linear"), head=Component("regression"))
    shape = Shape("vectors", "values", length=length, size_in=design.width, size_out=1)
    network = build(design, shape, 1, torch.float64)
    network.initialise([seed])
    states = torch.from_numpy(stream(seed, "check", "states").normal(size=(1, 4, length, design.width)))
    return network, states, name
