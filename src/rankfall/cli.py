"""The command line: `rankfall <verb>`. A verb is a file in `rankfall/commands`, imported only when it is called.

If a fork of the run's server does the work of a job, this process imports nothing but the client that asks for it.
"""

import errno
import resource
import sys

from rankfall.run.forks.client import run_in_fork

TYPE_CHECKING = False  # as in `typing`, which this file does not import
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Mapping


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return its exit code. A `RankfallError` is one line on stderr and exit code 2; anything else is a bug and keeps its
    traceback."""
    import argparse
    import importlib

    from rankfall import __version__
    from rankfall.errors import RankfallError

    arguments = sys.argv[1:] if argv is None else argv
    # `measure model` measures one model without a plan: the verb `model`
    is_model = arguments[:2] == ["measure", "model"]
    arguments = arguments[1:] if is_model else arguments
    verbs = _verbs(arguments[0] if arguments else "")
    parser = argparse.ArgumentParser(prog="rankfall", description="What attention loses with depth.")
    parser.add_argument("--version", action="version", version=f"rankfall {__version__}")
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for verb, summary in verbs.items():
        program = "rankfall measure model" if verb == "model" and is_model else f"rankfall {verb}"
        subparser = subparsers.add_parser(verb, prog=program, help=summary, description=summary)
        if verb == chosen:
            from rankfall.commands._planned import add_arguments

            command = importlib.import_module(f"rankfall.commands.{verb}")
            add_arguments(subparser, command.ARGUMENTS)
            subparser.set_defaults(run=command.run)
    if typo := find_typo(arguments, chosen, subparsers.choices):
        print(f"error: {typo}", file=sys.stderr)
        return 2
    options = parser.parse_args(arguments)
    try:
        code = int(options.run(options) or 0)
        if getattr(options, "expect", None):  # a job of a run
            print(describe_use())
        sys.stdout.flush()
        return code
    except RankfallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return end_with_error(error)


def find_typo(arguments: list[str], verb: str | None, parsers: "Mapping[str, ArgumentParser]") -> str:
    """Return the error for a verb or a flag that does not exist, with the nearest one that does; empty if all exist."""
    import re

    from rankfall.errors import suggest

    if verb is None or arguments[0] != verb:
        return ""
    if verb not in parsers:
        return f"there is no verb {verb!r}{suggest(verb, parsers)} (`rankfall --help` lists all)"
    known = re.findall(r"--[\w-]+", parsers[verb].format_help())
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word in before:
        flag = word.partition("=")[0]
        if flag.startswith("--") and not any(
            name.startswith(flag) for name in known
        ):  # argparse takes the start of a flag
            return f"rankfall {verb}: there is no {flag}{suggest(flag, known)} (`rankfall {verb} --help` lists all)"
    return ""


UNWRITTEN = (errno.ENOSPC, errno.EDQUOT)  # errors of writing to a stream, which have no file name


def end_with_error(error: OSError) -> int:
    """Return the exit code for an `OSError`. A closed pipe is no error; a file that cannot be read or written is reported in one line.
    Any other error is a bug and is raised again.
    """
    from rankfall.disk import CAUSES, cause, silence

    if isinstance(error, BrokenPipeError):  # `rankfall plan | head`: the reader has closed the pipe
        silence()
        return 0
    if error.errno not in CAUSES or (error.filename is None and error.errno not in UNWRITTEN):
        raise error
    where = "cannot print all" if error.filename is None else error.filename
    print(f"error: {where}: {cause(error)}", file=sys.stderr)
    silence()
    return 2


def _verbs(first: str) -> dict[str, str]:
    """Return verb -> first line of its module's docstring, read without importing the module. If `first` is a verb, it is the only key."""
    import ast
    from pathlib import Path

    folder = Path(__file__).parent / "commands"
    files = sorted(path for path in folder.glob("*.py") if not path.stem.startswith("_"))
    named = [path for path in files if path.stem == first]
    docstrings = {path.stem: ast.get_docstring(ast.parse(path.read_bytes())) or "" for path in named or files}
    return {verb: text.partition("\n")[0].rstrip(".").replace("%", "%%") for verb, text in docstrings.items()}


def describe_use() -> str:
    """Return processor time and memory that this process has used, for the end of a job's log."""
    process, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in (process, children))
    return f"{seconds:.2f} s of processors, {process.ru_maxrss // 1024} MB"


def program() -> int:
    """Run the command line, as a job of a run in a fork of the run's server if there is one, and return the exit code."""
    code = run_in_fork(sys.argv[1:])
    return main() if code is None else code


if __name__ == "__main__":
    sys.exit(program())
