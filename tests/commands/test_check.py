"""Guards `rankfall check`: what it prints, its exit codes, and the lines that say what is missing."""

import json
from pathlib import Path

import pytest

from rankfall.cli import main

MODEL = """
import torch
from torch import nn
from beside_the_model import WIDTH

def build(depth=2):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

def batch():
    return torch.randn(2, 6, WIDTH, generator=torch.Generator().manual_seed(1))

kept = {"src": batch()}

def both():
    return build(), kept

def with_arguments(width):
    return width

def a_list():
    return [1]

def fails():
    raise ValueError("no weights here")
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "beside_the_model.py").write_text("WIDTH = 8\n")
    (tmp_path / "mymodel.py").write_text(MODEL)
    return tmp_path / "mymodel.py"


def check(capsys, *arguments):
    code = main(["check", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("inputs", ["batch", "kept"])
def test_a_module_of_a_file_is_checked_and_what_runs_is_said(model, inputs, capsys):
    code, out, err = check(capsys, f"{model}:build", "--inputs", f"{model}:{inputs}")
    assert code == 0
    assert err == f"check: runs {model}: build(), and {model}:{inputs} for the inputs\n"
    assert "4 residual additions in 2 layers (2 mix tokens, 2 act token by token), width 8; 2 x 6 tokens" in out
    assert "branches times 1/sqrt(4)" in out and "with the 7 that were tried" in out


def test_json_has_every_number_and_what_failed(model, capsys):
    conditions = ("--fail-if", "residual_last < 2", "--fail-if", "residual_last < 0")
    code, out, _ = check(capsys, f"{model}:both", "--json", *conditions, "--no-changes")
    report = json.loads(out)
    (stream,) = report["streams"]
    last = stream["layers"][-1]["residual"]
    assert code == 1 and [layer["layer"] for layer in stream["layers"]] == [0, 1, 2]
    failed = {"condition": "residual_last < 2", "model": "mymodel.py:both", "stream": "", "value": last}
    assert report["failed"] == [failed]
    assert stream["variants"]["transformer"][-1] == last and stream["interventions"] == []


LACKING = {
    "buld": "mymodel.py has no 'buld'; did you mean 'build'?",
    "with_arguments": "mymodel.py:with_arguments() fails: TypeError: with_arguments() missing 1 required positional argument: 'width'",
    "a_list": "mymodel.py:a_list gives list, not an nn.Module: FILE.py:FUNCTION, a function without arguments that returns",
    "fails": "mymodel.py:fails() fails: ValueError: no weights here",
    "build": "mymodel.py:build needs an example of its inputs: --inputs mymodel.py:NAME",
    "": "write FILE.py:NAME, for example mymodel.py:build",
}


@pytest.mark.parametrize("name", LACKING)
def test_what_a_file_lacks_is_one_line(model, name, capsys):
    code, out, err = check(capsys, f"{model}:{name}")
    assert code == 2 and out == ""
    line = err.splitlines()[-1]
    assert line.startswith("error: ") and LACKING[name] in line


def write_config(folder: Path, architectures: str) -> Path:
    path = folder / "c.yaml"
    path.write_text(
        "tasks: {sorting: {length: 4}}\ntrainings: {init: {epochs: 0}}\n"
        "grid: [{task: sorting, architecture: plain, training: init, seed: 0}]\n"
        f"architectures:\n  plain: {{depth: 3, width: 16, heads: 2, mlp: gelu}}\n{architectures}"
    )
    return path


def test_an_architecture_of_a_configuration_is_checked(tmp_path, capsys):
    path = write_config(tmp_path, "  bare: {base: plain, residual: none, mlp: none, norm: none}\n")
    code, out, err = check(capsys, f"{path}:plain", "--length", 8)
    assert code == 0 and "c.yaml: 3 layers, width 16, 2 heads, 8 tokens (--length); sizes that its grid sets" in err
    assert "6 residual additions in 3 layers" in out and "4 x 8 tokens" in out
    code, out, _ = check(capsys, f"{path}:bare", "--length", 8, "--fail-if", "residual_last < 1e-6")
    assert code == 1 and "tokens become one vector" in out and "a skip around each layer" in out
    code, _, err = check(capsys, f"{path}:plan")
    assert code == 2 and "has no architecture 'plan'; did you mean 'plain'?" in err


MIXERS = """
from rankfall import Linear
from torch import nn


class Own(nn.Module):
    def __init__(self, sizes, position, normaliser, mask, site):
        super().__init__()
        self.value = Linear(sizes, sizes.width, sizes.width, "value")

    def forward(self, x, drop=None):
        return self.value(x)


class Batch(Own):
    def forward(self, x, drop=None):
        return self.value(x).mean(1, keepdim=True).expand_as(x)
"""


def test_samples_of_a_configured_architecture_are_told_apart(tmp_path, capsys, monkeypatch):
    """A mean over the batch passed, and an attention that mixes nothing had one sample. A check that fails is exit code 1."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mixers.py").write_text(MIXERS)
    own = "".join(f"  {name}: {{base: plain, attention: 'mixers:{name}'}}\n" for name in ("Own", "Batch"))
    path = write_config(tmp_path, own)
    for name in ("plain", "Own", "Batch"):
        code, out, _ = check(capsys, f"{path}:{name}", "--brief", "--only", "samples-independent")
        (line,) = (line for line in out.splitlines() if "samples-independent" in line)
        if name == "Batch":
            assert code == 1 and line.startswith("FAIL")
        else:
            assert line.startswith("pass") and "changing sample 4 changes nothing in the others" in line


@pytest.mark.slow
def test_a_type_of_the_library_is_checked_small(capsys):
    code, out, err = check(capsys, "gpt2", "--small", "--no-changes", "--length", 12)
    assert code == 0 and "builds gpt2 at small size" in err
    additions = "8 residual additions in 4 layers (4 mix tokens, 4 act token by token)"
    assert f"{additions}, width 32; 2 x 12 tokens; one way" in out
    code, _, err = check(capsys, "llama")
    assert code == 2 and "billion weights: --small, or --set" in err
    code, _, err = check(capsys, "lama", "--small")
    assert code == 2 and "did you mean 'llama'?" in err
