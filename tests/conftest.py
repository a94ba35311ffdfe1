"""Tests compute on one thread each, as jobs do: results do not depend on the machine's cores, and processes do not fight over them."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sharing

from rankfall import descriptions

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for every process that a test starts

# A shell starts its background jobs deaf to Ctrl-C, and everything they start; the tests that press it need to be heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    items[:] = sharing.longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return sharing.scheduler(config, log) if config.getoption("dist") == "loadfile" else None


# Folders as text: they are compared with the files of all modules around each test. The checkout itself may be a temporary one.
TEMPORARY, CHECKOUT = tempfile.gettempdir() + os.sep, str(Path(__file__).parents[1]) + os.sep


@pytest.fixture(autouse=True)
def modules_of_a_test_end_with_it() -> Iterator[None]:
    """Modules that a test wrote and imported are forgotten, and those that it replaced are put back: another test of the same process
    may write one of the same name, and a function that was imported twice is not the same function."""
    before, path = dict(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    if sys.modules == before:  # in most of thousands of tests, of thousands of modules
        return
    for name in sys.modules.keys() - before.keys():
        if _temporary(sys.modules[name]):
            del sys.modules[name]
    for name, module in before.items():
        if sys.modules.get(name) is not module and not _temporary(module):
            sys.modules[name] = module


def _temporary(module: object) -> bool:
    """Whether a module lies in a folder that tests write to."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.startswith(TEMPORARY) and not file.startswith((CHECKOUT, sys.prefix))


@pytest.fixture(autouse=True)
def descriptions_by_fork(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Components are described in a fork of the test's process, which has torch, since a new process takes seconds to import it."""
    if request.node.get_closest_marker("own_process") is None:
        monkeypatch.setattr(descriptions, "run_child", _describe_by_fork)


def _describe_by_fork(asked: Path, written: Path) -> str:
    import torch  # noqa: F401  (once a process, so that its forks have it)

    child = os.fork()
    if child:
        return f"its process ended with status {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"
    try:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "rankfall" or _temporary(module):
                del sys.modules[name]  # the files may be others than those that this process imported
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        from rankfall.trial.describe import main

        main(str(asked), str(written))
    finally:
        os._exit(0)
