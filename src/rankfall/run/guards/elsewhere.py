"""A second process, with another PYTHONHASHSEED, in which components are tried once more.

    python -m rankfall.run.guards.elsewhere

It imports torch once, and forks for each line on its standard input: a request, answered by a file of outcomes and a line. It ends with its
standard input, and so with the job that started it. One is started by the first component that is not this package's own and not yet tried.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from rankfall import components
from rankfall.design import Component
from rankfall.run.guards.trial.candidate import Drawn
from rankfall.run.guards.trial.setting import Surroundings
from rankfall.run.guards.trial.variants import Outcome, outcomes_of_use
from rankfall.run.keys import loader
from rankfall.run.keys.loader import Text
from rankfall.tasks._dataset import draw

OTHERS: "list[Elsewhere]" = []  # of this process; one at most


class Elsewhere:
    """The second process, as this one sees it."""

    def __init__(self) -> None:
        own = os.environ.get("PYTHONHASHSEED")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rankfall.run.guards.elsewhere"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONHASHSEED": "1" if own != "1" else "2", "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        atexit.register(self.close)

    def outcomes(
        self, kind: str, component: Component, setting: Surroundings, drawn: Drawn, after: str
    ) -> dict[str, Outcome]:
        """Of the component as it is used, and of the variants where it comes after them."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with tempfile.TemporaryDirectory(prefix="rankfall-") as folder:
            out = Path(folder) / "outcomes.pt"
            asked = {
                "kind": kind,
                "component": asdict(component),
                "setting": asdict(setting),
                "seed": None if drawn is None else drawn[1],
                "drawn": drawn is not None,
                "after": after,
                "cwd": os.getcwd(),
                "path": sys.path,
                "texts": [
                    [text.module, text.file, text.is_package, text.content.decode("latin-1")]
                    for module, text in loader.install().frozen.items()
                    if module.partition(".")[0] != loader.OWN
                ],
                "threads": torch.get_num_threads(),
                "out": str(out),
            }
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
            if answer != "0":
                raise RuntimeError(f"it ended with {answer or 'no answer'}")
            found: dict[str, Outcome] = torch.load(out)
            return found

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def other_process() -> Elsewhere:
    """The second process of this one, started anew where it has ended."""
    if OTHERS and OTHERS[0].process.poll() is not None:
        OTHERS.clear()
    if not OTHERS:
        OTHERS.append(Elsewhere())
    return OTHERS[0]


def serve() -> None:
    """Answer requests until standard input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what components print is no answer
    for line in sys.stdin:
        worker = os.fork()
        if worker == 0:
            code = 1
            try:
                answer(json.loads(line))
                code = 0
            except BaseException as error:  # whatever a component raises
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
            finally:
                os._exit(code)
        _, status = os.waitpid(worker, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def answer(asked: dict[str, Any]) -> None:
    """In a fork: everything is imported anew."""
    os.chdir(asked["cwd"])
    sys.path[:] = asked["path"]
    torch.set_num_threads(asked["threads"])
    kind, component, setting = asked["kind"], Component(**asked["component"]), Surroundings(**asked["setting"])
    texts = {one[0]: Text(one[0], one[1], one[2], one[3].encode("latin-1")) for one in asked["texts"]}
    seed = asked["seed"]
    with loader.frozen(texts):  # what the job has read, though files may have been edited since
        found = outcomes_of_use(
            kind,
            component,
            setting,
            lambda: (draw(components.bound("task", component), seed), seed) if asked["drawn"] else None,
            asked["after"],
        )
    torch.save(found, asked["out"])


if __name__ == "__main__":
    loader.install()
    serve()
