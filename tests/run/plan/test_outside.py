"""Guards that the plan refuses a component that reads the clock, machine or process, or random numbers without a seed, and no other."""

from pathlib import Path
from typing import Any

import pytest
from plans import changed as config
from plans import component, planned, refusal

from rankfall import components
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.keys.missing import check_outside

NORMALISER = "architectures/full/normaliser"
FACTORS = {
    "import time": "time.perf_counter()",
    "import time as t": "t.monotonic_ns()",
    "from time import perf_counter as now": "now()",
    "from time import *": "process_time()",
    "import datetime as d": "d.datetime.now().second",
    "from datetime import datetime": "datetime.now().second",
    "from datetime import date": "date.today().day",
    "import os": "os.getpid()",
    "from os import cpu_count": "cpu_count()",
    "import os.path": "len(os.getcwd())",
    "import pathlib": "len(str(pathlib.Path.cwd()))",
    "from pathlib import Path": "len(str(Path.cwd()))",
    "import torch": "torch.get_num_threads()",
    "import platform": "len(platform.node())",
    "from socket import gethostname": "len(gethostname())",
    "import time as clock": "getattr(clock, 'time')()",
    "import numpy as np": "np.random.rand()",
    "from numpy.random import choice": "choice(3)",
    "import numpy": "numpy.random.default_rng().normal()",
    "import random": "random.random()",
    "from random import Random": "Random(None).random()",
    "from torch import rand": "rand(())",
}


RENAMED = {  # what stands in line 5
    "t = time": "t.time()",
    "t: object = time": "t.time()",
    "one, t = 1, time": "t.time()",
    "t = u = time": "t.time()",
    "u = time\nt = u": "t.time()",
    "t = None if one else time": "t.time()",
    "now = time.time": "now()",
    "n = numpy.random": "n.rand()",
    "load = importlib": "load.import_module('time').time()",
    "t = __import__('time')": "t.time()",
}


def scaled(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, imports: str, factor: str, end: str = "") -> str:
    """A normaliser in a module of this name."""
    monkeypatch.chdir(folder)
    component(folder, name, f"{imports}\n\n\ndef scaled(logits):\n    return logits.softmax(-1) * {factor}\n{end}")
    return f"{name}:scaled"


@pytest.mark.parametrize("imports", FACTORS)
def test_what_no_key_holds_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str
) -> None:
    name = scaled(tmp_path, monkeypatch, "lab_outside", imports, FACTORS[imports])
    said = refusal(config(NORMALISER, name))
    assert f"normaliser '{name}'" in said and "lab_outside.py" in said and "in line 5" in said and "\n" not in said
    draws = "rand" in imports or "numpy" in imports
    assert ("begin elsewhere in every process" if draws else "which no key holds") in said
    assert ("with a seed that is an option" if draws else "an option, which is part of the key") in said


@pytest.mark.parametrize("line", RENAMED)
def test_another_name_of_a_module_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    imports = f"import importlib, time, numpy\none = 1\n{line}"
    said = refusal(config(NORMALISER, scaled(tmp_path, monkeypatch, "lab_renamed", imports, RENAMED[line])))
    assert ("`numpy.random.rand`" if "numpy" in line else "`time.time`") in said and "\n" not in said


GIVEN = (
    "def scaled(logits, t=time):\n    return logits * t.time()",
    "def scaled(logits):\n    if (t := time):\n        return logits * t.time()",
    "class Scaled:\n    def __init__(self, sizes):\n        self.t = time\n    def __call__(self, x):\n        return x * self.t.time()",
)


@pytest.mark.parametrize("body", GIVEN)
def test_so_is_a_default_and_an_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.chdir(tmp_path)
    component(tmp_path, "lab_given", f"import time\n\n\n{body}\n")
    name = "lab_given:Scaled" if "class" in body else "lab_given:scaled"
    assert "reads `time.time` in line" in refusal(config(NORMALISER, name))


def test_so_is_it_in_a_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(tmp_path, "lab_helper", "import time\ndef now():\n    return time.time()")
    name = scaled(tmp_path, monkeypatch, "lab_helped", "from lab_helper import now", "now()")
    assert "lab_helper.py reads `time.time` in line 3" in refusal(config(NORMALISER, name))


@pytest.mark.parametrize(
    ("kind", "line"),
    [("measures", "now = time.time()"), ("figures", "np.random.choice(3)"), ("figures", "time.time()")],
)
def test_so_are_a_measure_and_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    facts = 'TABLE = "path_counts"\nNEEDS = "nothing"\nTABLES = ["paths"]'
    component(tmp_path, "lab_own", f"import time\nimport numpy as np\n{facts}\ndef own(given):\n    {line}")
    one = {"own": {kind.removesuffix("s"): "lab_own:own"}}
    more: dict[str, Any] = {"measures": {"paths": {"counts": [2]}}, kind: one} if kind == "figures" else {kind: one}
    said = refusal(config("page", False) | more)
    assert "'lab_own:own'" in said and "in line 7" in said


@pytest.mark.parametrize(
    ("imports", "factor"),
    [
        ("import time, random, platform", "1.0"),
        ("import datetime", "datetime.date(2020, 1, 1).day"),
        ("import numpy as np", "np.random.default_rng(0).normal()"),
        ("import numpy as np", "np.random.default_rng(seed=3).normal()"),
        ("import random", "random.Random(1).random()"),
        ("import torch", "torch.rand((), generator=torch.Generator().manual_seed(0))"),
        ("import os", "len(os.path.join('a', 'b'))"),
        ("import math as time", "time.sqrt(2)"),
        ("import time\nt = time if False else None\nt2 = t", "1.0"),
        ("import time, math\ntime = math", "1.0"),
        ("import random\nr = random.Random(3)", "r.random()"),
        ("import numpy as np\nrng = np.random.default_rng(0)", "rng.random()"),
    ],
)
def test_what_depends_on_nothing_else_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str, factor: str
) -> None:
    main = "\nif __name__ == '__main__':\n    import time\n    print(time.time())\n"
    assert planned(NORMALISER, scaled(tmp_path, monkeypatch, "lab_inside", imports, factor, main)).cells


def test_no_component_of_the_package_is_caught() -> None:
    sources, count = Sources(), 0
    for kind in components.KINDS:
        for name in components.names(kind):
            location = components.locate(kind, name)
            if location is not None:  # `auto` stands for others
                check_outside(kind, name, location.module, sources)
                count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("@torch.compile", "torch.compile"),
        ("@torch.compile(dynamic=True)", "torch.compile"),
        ("fast = torch.compile(abs)\n", "torch.compile"),
        ("from torch import compile as fast\n@fast", "torch.compile"),
        ("@torch.jit.script", "torch.jit.script"),
    ],
)
def test_a_component_that_pytorch_compiles_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, call: str
) -> None:
    """After eight sizes it was computed otherwise, and its cells failed for what the compiler replaces in torch."""
    monkeypatch.chdir(tmp_path)
    component(tmp_path, "lab_compiled", f"import torch\n{line}\ndef scaled(logits):\n    return logits.softmax(-1)\n")
    said = refusal(config(NORMALISER, "lab_compiled:scaled"))
    assert f"lab_compiled.py calls `{call}` in line" in said and "; leave it out: " in said and "\n" not in said
