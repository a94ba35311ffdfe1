"""Guards that a component leaves the process as it was: what it changes there, other components compute with, whose keys lack its file."""

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import config

from rankfall import cli, components
from rankfall.nets.normalisers import softmax as softmax_file
from rankfall.run.guards import watch
from rankfall.run.guards.process import Altered, check_unaltered, same_process
from rankfall.run.guards.settings import read_settings
from rankfall.run.guards.unchanged import prove_code
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

pytestmark = pytest.mark.long

CHANGES = {  # a statement -> what the refusal says
    "torch.set_float32_matmul_precision('medium')": "changes torch.get_float32_matmul_precision() from 'highest' to 'medium'",
    "torch.set_default_dtype(torch.float64)": "changes torch.get_default_dtype() from torch.float32 to torch.float64",
    "torch.set_num_threads(3)": "changes torch.get_num_threads() from",
    "torch.set_flush_denormal(True)": "changes torch.set_flush_denormal from False to True",
    "torch.use_deterministic_algorithms(True, warn_only=True)": "changes torch.are_deterministic_algorithms_enabled()",
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'": "changes torch.",
    "torch.set_grad_enabled(False)": "changes torch.is_grad_enabled() from True to False",
    "np.seterr(under='raise')": "changes numpy.geterr()",
    "os.chdir('/')": "changes os.getcwd()",
    "torch.Tensor.softmax = lambda self, dim: self.sigmoid()": "replaces torch.Tensor.softmax",
    "torch.matmul = torch.mul": "replaces torch.matmul",
    "torch.nn.functional.softmax = torch.sigmoid": "replaces torch.nn.functional.softmax",
    "torch.nn.Linear.forward = lambda self, x: x": "replaces torch.nn.Linear.forward",
    "np.exp = np.expm1": "replaces numpy.exp",
    "math.pi = 3.0": "replaces math.pi",
    "softmax_file.softmax = lambda logits: logits.sigmoid()": "replaces rankfall.nets.normalisers.softmax.softmax",
    "softmax_file.sum = max": "replaces rankfall.nets.normalisers.softmax.sum",
    "components.KINDS_ = 1; components.AUTO = 'none'": "replaces rankfall.components.AUTO",
}  # fmt: skip
HEAD = "import math, os\nimport numpy as np\nimport torch\nfrom rankfall import components\n"
HEAD += "import rankfall.nets.normalisers.softmax as softmax_file\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("altered_")]:
        del sys.modules[name]


def write(lab: Path, text: str, where: str) -> None:
    body = f"    {text}\n" if where == "call" else ""
    top = f"{text}\n" if where == "import" else ""
    (lab / "altered_lab.py").write_text(f"{HEAD}{top}\n\ndef sharp(logits):\n{body}    return logits.softmax(-1)\n")


def raw() -> dict[str, Any]:
    return config(architecture={"normaliser": "altered_lab:sharp", "depth": 1})


def state() -> tuple[Any, ...]:
    return read_settings(), math.pi, np.exp, torch.matmul, vars(torch.Tensor).get("softmax"), softmax_file.softmax


@pytest.mark.parametrize("where", ["call", "import"])
@pytest.mark.parametrize("text", CHANGES)
def test_a_component_that_changes_the_process_ends_the_job(lab: Path, text: str, where: str) -> None:
    """In one line that names its file; and the process is put back."""
    write(lab, text, where)
    plan, before = make_plan(raw()), state()
    (cell,) = plan.cells
    for _ in range(2):  # whoever imports it again is told again
        with pytest.raises(Altered) as caught, prove_code([cell.code], plan.texts), watch.numerics(cell.code):
            components.load("normaliser", "altered_lab:sharp")(torch.zeros(2))
        said = str(caught.value)
        assert re.match(r"altered_lab\.py(, when it is imported,)? (changes|replaces) ", said) and CHANGES[text] in said
        assert "\n" not in said and said.endswith("nothing is kept")
        assert state() == before


def test_what_is_undone_is_no_change(lab: Path) -> None:
    text = "torch.set_default_dtype(torch.float64); torch.set_default_dtype(torch.float32); import json.tool, scipy.special"
    for where in ("call", "import"):
        sys.modules.pop("altered_lab", None)
        write(lab, text, where)
        plan = make_plan(raw())
        (cell,) = plan.cells
        with prove_code([cell.code], plan.texts), watch.numerics(cell.code):
            components.load("normaliser", "altered_lab:sharp")(torch.zeros(2))


def test_another_architecture_is_trained_as_without_the_component(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows had been computed with the component's softmax, under a key without that file."""
    write(lab, "torch.Tensor.softmax = lambda self, dim: self.sigmoid()", "import")
    mixed = raw()
    mixed["architectures"] = {"own": {"normaliser": "altered_lab:sharp", "depth": 1}, "fine": {"depth": 1}}
    mixed["grid"] = [{"task": "sorting", "architecture": ["own", "fine"], "training": "short", "seed": 0}]
    mixed["compute"] = {"engine": "plain"}
    alone = mixed | {"grid": [mixed["grid"][0] | {"architecture": "fine"}], "architectures": {"fine": {"depth": 1}}}
    found = {}
    for name, config_of in {"mixed": mixed, "alone": alone}.items():
        (lab / "config.json").write_text(json.dumps(config_of | {"results": name}))
        place = ["--task", "sorting", "--shard", "0", "--out", "t.parquet"]
        assert cli.main(["train", "--config", "config.json", *place]) == 0
        store = Store(lab / name / "store")
        found[name] = [record for record in store.records() if record.status == "done"]
    (fine,), (same,) = found["mixed"], found["alone"]
    assert fine.record["final"] == same.record["final"]
    refusals = [line for line in capsys.readouterr().err.splitlines() if line.startswith("refused, so 1 cell failed: ")]
    assert (
        len(refusals) == 1
        and "altered_lab.py replaces torch.Tensor.softmax, which other components use; " in refusals[0]
    )


def test_nothing_is_computed_in_a_process_that_cannot_be_put_back(lab: Path) -> None:
    write(lab, "softmax_file.softmax.__defaults__ = (1,)", "call")
    plan = make_plan(raw())
    (cell,) = plan.cells
    before = softmax_file.softmax.__defaults__
    try:
        with prove_code([cell.code], plan.texts):
            for _ in range(2):
                said = r"replaces rankfall\.nets\.normalisers\.softmax\.softmax"
                with pytest.raises(Altered, match=said), watch.numerics(cell.code):
                    components.load("normaliser", "altered_lab:sharp")(torch.zeros(2))
    finally:
        softmax_file.softmax.__defaults__ = before


def test_this_package_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    """A job of its own components, with all that it imports late: it replaces no name, and no setting is another afterwards."""
    from rankfall.run.jobs.engine import Settings
    from rankfall.run.jobs.training import train_cells
    from rankfall.train.progress import Progress

    plan = make_plan(config())
    with same_process(), check_unaltered(lambda: "rankfall"):
        train_cells(plan.cells, Store(tmp_path / "store"), Settings(torch.device("cpu")), Progress(), plan.origin)


def test_looking_costs_little() -> None:
    """Processor time of a look before and after, of all names of torch, NumPy and this package: some 5 ms; a stack takes seconds."""
    import rankfall.run.jobs.measuring  # noqa: F401

    def seconds(names: bool) -> float:
        began = time.thread_time()
        with check_unaltered(lambda: "nobody", names):
            pass
        return time.thread_time() - began

    with same_process():
        assert min(seconds(names=True) for _ in range(5)) < 0.05
        assert min(seconds(names=False) for _ in range(5)) < 0.002  # around each cell of each measure


def test_what_torch_does_to_its_own_functions_is_no_replacement() -> None:
    """With the first import of its compiler, as by `torch.func`, it wraps some of them, such as `torch.manual_seed`."""
    program = (
        "import torch\nfrom rankfall.run.guards.process import same_process, check_unaltered\nbefore = torch.manual_seed\n"
        "with same_process(), check_unaltered(lambda: 'nobody'):\n    import torch._dynamo\n"
        "assert torch.manual_seed is not before"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
