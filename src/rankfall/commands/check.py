"""Check a model before training: named checks of samples, masks, rank, attention, gradients and numbers, a line each.

Exit status: 0 if no check fails and no --fail-if holds; 1 if one does; 2 for an error.
"""

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

ARGUMENTS = """
[MODEL...]              FILE.py:FUNCTION (the file is run), CONFIG.yaml:ARCHITECTURE, or a name of Hugging Face (bert, gpt2, a
                        folder, minilm); several are put side by side
--inputs FILE.py:NAME   an example of its inputs: a tensor, tuple or dict, or a function
--loss FILE.py:NAME     a function of the output, for the initial loss
--build FILE.py:NAME    a function of width or depth that returns the module
--blocks NAME...        names or classes of the modules that are its layers
--only CHECK...         run these checks
--explain CHECK         print the formula of a check, and its limits with their origin
--brief                 print the lines of the checks and no tables
--json                  print JSON
--fail-if CONDITION     exit with status 1 if this holds, e.g. "residual_last < 0.1"; 2 is an error (repeatable)
--small                 a Hugging Face type at small size: 4 layers, width 32
--set KEY=VALUE         change its configuration, e.g. n_layer=6 (repeatable)
--length N              tokens of a sample if inputs are drawn (default: 32)
--seed N                seed of weights and inputs that are drawn (default: 0)
--no-changes            do not try changes of the model
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.check.named import FAIL, explain, find_check
    from rankfall.check.report import check
    from rankfall.check.source import read_value
    from rankfall.check.table import condition, report_text, result_lines, side_by_side
    from rankfall.errors import RankfallError

    if args.explain is not None:
        print(explain(args.explain))
        return 0
    if not args.model:
        raise RankfallError("no model: write FILE.py:FUNCTION, CONFIG.yaml:ARCHITECTURE or a name of Hugging Face")
    conditions = [condition(text) for text in args.fail_if]
    only = tuple(find_check(name).name for name in args.only)
    files = {option: getattr(args, option) for option in ("loss", "build")}
    functions = {option: read_value(file, f"--{option}") for option, file in files.items() if file}
    changes = not (args.no_changes or args.brief or len(args.model) > 1)
    models = {}
    for target in args.model:
        model, inputs, name = load_module(args, target)
        models[name] = check(
            model, inputs, blocks=args.blocks or None, name=name, changes=changes, only=only, **functions
        )
    reports = [(name, report) for name, streams in models.items() for report in streams]
    held = [(rule, name, report) for rule in conditions for name, report in reports if rule.holds(report) is not False]
    if args.json:
        failed = [
            {"condition": rule.text, "model": name, "stream": report.stream, "value": rule.value(report)}
            for rule, name, report in held
        ]
        shown = [{"model": name, "streams": [asdict(report) for report in streams]} for name, streams in models.items()]
        print(json.dumps((shown[0] if len(shown) == 1 else {"models": shown}) | {"failed": failed}, indent=2))
    elif len(models) > 1:
        print("\n".join(side_by_side(models)))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for name, streams in models.items():
            print(
                "\n".join(line for report in streams for line in result_lines(report, name))
                if args.brief
                else report_text(streams, name, width)
            )
    for rule, name, report in [] if args.json else held:
        value = rule.value(report)
        measured = "is not known" if value is None else f"it is {value:.4g}"
        print(f"fails: {rule.text} ({' '.join(filter(None, (name, report.stream)))}): {measured}")
    return int(bool(held) or any(result.verdict == FAIL for _, report in reports for result in report.results))


def load_module(args: argparse.Namespace, target: str) -> "tuple[nn.Module, Any, str]":
    """Return the module, an example of its inputs, and its name."""
    from rankfall.check.source import is_file, module_from_file
    from rankfall.errors import RankfallError

    def say(line: str) -> None:
        print(f"check: {line}", file=sys.stderr)

    if is_file(target):
        if args.small or args.set:
            raise RankfallError("--small and --set are for a Hugging Face name; a file builds its own model")
        return module_from_file(target, args.inputs, say)
    if args.inputs is not None:
        raise RankfallError("--inputs is for a model from a file; inputs of a named or configured model are drawn")
    file, _, architecture = target.rpartition(":")
    if file.endswith((".yaml", ".yml")):
        return of_configuration(file, architecture, args.length, args.seed, say)
    if target.endswith((".yaml", ".yml")):
        raise RankfallError(f"model {target!r}: write CONFIG.yaml:ARCHITECTURE")
    from rankfall.check.library import library_model
    from rankfall.commands.model import _parse_setting

    settings = dict(_parse_setting(text) for text in args.set)
    return library_model(target, settings, small=args.small, length=args.length, seed=args.seed, say=say)


def of_configuration(
    file: str, name: str, length: int, seed: int, say: "Callable[[str], None]"
) -> "tuple[nn.Module, Any, str]":
    """Build the untrained network of an architecture, and say its sizes; return it with random states (1, 4, T, D) and its name."""
    from dataclasses import replace
    from pathlib import Path

    import torch

    from rankfall.design import Component
    from rankfall.errors import RankfallError, suggest
    from rankfall.nets.network import Shape, build
    from rankfall.random_streams import stream
    from rankfall.report.labels import many
    from rankfall.run.config.types import parse, read

    architectures = parse(read(Path(file))).architectures
    if name not in architectures:
        raise RankfallError(f"{file} has no architecture {name!r}" + suggest(name, architectures))
    design = architectures[name]
    sizes = (
        f"{many(design.depth, 'layer')}, width {design.width}, {many(design.heads, 'head')}, {many(length, 'token')}"
    )
    say(f"builds architecture {name} of {file}: {sizes} (--length); sizes that its grid sets are not used")
    design = replace(design, embedding=Component("linear"), head=Component("regression"))
    shape = Shape("vectors", "values", length=length, size_in=design.width, size_out=1)
    network = build(design, shape, 1, torch.float64)
    network.initialise([seed])
    states = torch.from_numpy(stream(seed, "check", "states").normal(size=(1, 4, length, design.width)))
    return network, states, name
