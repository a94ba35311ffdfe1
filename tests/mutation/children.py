"""Work in a forked child that sees one source tree: its own sources are loaded, libraries are those that the parent has imported."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_child(tree: Path, work: Callable[[], Any], patience: float) -> Any:
    """What `work` returns in a fork that sees the tree's package; None where it raises or does not end in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        code = 1
        try:
            sys.dont_write_bytecode = True
            os.fsync = lambda fd: None  # files of a child never outlive the machine
            sys.path[:] = [
                str(tree),
                *(p for p in sys.path if not p.rstrip("/").endswith("src") or p.rstrip("/").endswith("engine/src")),
            ]
            answer = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            code = 0
        except BaseException:
            if os.environ.get("MUTANTS_SAY"):
                traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    try:
        return _answer(child, reading, patience)
    finally:  # also where the campaign is broken off meanwhile
        os.close(reading)
        os.waitpid(child, 0)


def _answer(child: int, reading: int, patience: float) -> Any:
    parts, ends = [], time.monotonic() + patience
    try:
        while select.select([reading], [], [], max(0.0, ends - time.monotonic()))[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                return json.loads(b"".join(parts))
            parts.append(part)
        os.killpg(child, signal.SIGKILL)
    except ValueError:
        pass
    except BaseException:
        os.killpg(child, signal.SIGKILL)
        raise
    return None


def recorded(tree: Path, work: Callable[[], Any]) -> Callable[[], dict[str, Any]]:
    """`work` that also tells which files of the tree it opened, and which modules it imported from elsewhere."""

    def child() -> dict[str, Any]:
        opened: set[str] = set()

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "open" and isinstance(args[0], str | os.PathLike):
                opened.add(os.fspath(args[0]))

        sys.addaudithook(hook)
        result, here = work(), f"{tree}{os.sep}"
        modules = [name for name, module in sys.modules.items() if not _own(name, module, here)]
        return {
            "result": result,
            "opened": sorted(
                path.removeprefix(here) for path in opened if path.startswith(here) and "__pycache__" not in path
            ),
            "modules": modules,
        }

    return child


def _own(name: str, module: Any, here: str) -> bool:
    file = getattr(module, "__file__", None) or ""
    return name == "__main__" or file.startswith(here) or name.partition(".")[0] == "rankfall"
