"""Guards `rankfall check`: what it prints, its exit codes, and the lines that say what is missing."""

import json
import textwrap

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
    file = tmp_path / "mymodel.py"
    file.write_text(textwrap.dedent(MODEL))
    return file


def ran(capsys, *arguments):
    code = main(["check", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("inputs", ["batch", "kept"])
def test_a_module_of_a_file_is_checked_and_what_runs_is_said(model, inputs, capsys):
    code, out, err = ran(capsys, f"{model}:build", "--inputs", f"{model}:{inputs}")
    assert code == 0
    assert err == f"check: runs {model}: build(), and {model}:{inputs} for the inputs\n"
    assert "4 residual additions in 2 layers (2 mix tokens, 2 act token by token), width 8; 2 x 6 tokens" in out
    assert "branches times 1/sqrt(4)" in out and "with the 7 that were tried" in out


def test_json_has_every_number_and_what_failed(model, capsys):
    code, out, _ = ran(
        capsys,
        f"{model}:both",
        "--json",
        "--fail-if",
        "residual_last < 2",
        "--fail-if",
        "residual_last < 0",
        "--no-changes",
    )
    found = json.loads(out)
    (stream,) = found["streams"]
    assert code == 1
    assert [layer["layer"] for layer in stream["layers"]] == [0, 1, 2]
    last = stream["layers"][-1]["residual"]
    assert found["failed"] == [
        {"condition": "residual_last < 2", "model": "mymodel.py:both", "stream": "", "value": last}
    ]
    assert stream["variants"]["transformer"][-1] == last
    assert stream["interventions"] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("buld", "mymodel.py has no 'buld'; did you mean 'build'?"),
        (
            "with_arguments",
            "mymodel.py:with_arguments() fails: TypeError: with_arguments() missing 1 required positional argument: 'width'",
        ),
        (
            "a_list",
            "mymodel.py:a_list gives list, not an nn.Module: FILE.py:FUNCTION, a function without arguments that returns",
        ),
        ("fails", "mymodel.py:fails() fails: ValueError: no weights here"),
        ("build", "mymodel.py:build needs an example of its inputs: --inputs mymodel.py:NAME"),
        ("", "write FILE.py:NAME, for example mymodel.py:build"),
    ],
)
def test_what_a_file_lacks_is_one_line(model, name, said, capsys):
    code, out, err = ran(capsys, f"{model}:{name}")
    assert code == 2 and out == ""
    line = err.splitlines()[-1]
    assert line.startswith("error: ") and said in line


def test_an_architecture_of_a_configuration_is_checked(tmp_path, capsys):
    shared = "depth: 3, width: 16, heads: 2"
    (tmp_path / "c.yaml").write_text(
        "tasks: {sorting: {length: 4}}\ntrainings: {init: {epochs: 0}}\n"
        "grid: [{task: sorting, architecture: deep, training: init, seed: 0}]\n"
        f"architectures:\n  bare: {{residual: none, mlp: none, norm: none, {shared}}}\n  deep: {{residual: add, mlp: gelu, {shared}}}\n"
    )
    code, out, err = ran(capsys, f"{tmp_path}/c.yaml:deep", "--length", 8)
    assert code == 0 and "builds architecture deep of" in err
    assert "6 residual additions in 3 layers" in out and "4 x 8 tokens" in out
    code, out, _ = ran(capsys, f"{tmp_path}/c.yaml:bare", "--length", 8, "--fail-if", "residual_last < 1e-6")
    assert code == 1 and "tokens become one vector" in out and "a skip around each layer" in out
    code, _, err = ran(capsys, f"{tmp_path}/c.yaml:dep")
    assert code == 2 and "has no architecture 'dep'; did you mean 'deep'?" in err


def test_samples_of_a_configured_architecture_are_told_apart(tmp_path, capsys, monkeypatch):
    """A mean over the batch passed, and an attention that mixes nothing had one sample."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mixers.py").write_text(
        "from rankfall import Linear\nfrom torch import nn\n\n\nclass Own(nn.Module):\n"
        "    def __init__(self, sizes, position, normaliser, mask, site):\n        super().__init__()\n"
        '        self.value = Linear(sizes, sizes.width, sizes.width, "value")\n\n'
        "    def forward(self, x, drop=None):\n        return self.value(x)\n\n\nclass Batch(Own):\n"
        "    def forward(self, x, drop=None):\n        return self.value(x).mean(1, keepdim=True).expand_as(x)\n"
    )
    (tmp_path / "c.yaml").write_text(
        "tasks: {sorting: {length: 4}}\ntrainings: {init: {epochs: 0}}\n"
        "grid: [{task: sorting, architecture: plain, training: init, seed: 0}]\narchitectures:\n"
        "  plain: {depth: 2, width: 16, heads: 2}\n  own: {base: plain, attention: 'mixers:Own'}\n"
        "  batch: {base: plain, attention: 'mixers:Batch'}\n"
    )
    found = {}
    for name in ("plain", "own", "batch"):
        _, out, _ = ran(capsys, f"{tmp_path}/c.yaml:{name}", "--brief", "--only", "samples-independent")
        found[name] = next(line for line in out.splitlines() if "samples-independent" in line)
    for name in ("plain", "own"):
        assert found[name].startswith("pass") and "changing sample 4 changes nothing in the others" in found[name]
    assert found["batch"].startswith("FAIL")


@pytest.mark.slow
def test_a_type_of_the_library_is_checked_small(capsys):
    code, out, err = ran(capsys, "gpt2", "--small", "--no-changes", "--length", 12)
    assert code == 0 and "builds gpt2 at small size" in err
    assert (
        "8 residual additions in 4 layers (4 mix tokens, 4 act token by token), width 32; 2 x 12 tokens; one way" in out
    )
    code, _, err = ran(capsys, "llama")
    assert code == 2 and "billion weights: --small, or --set" in err
    code, _, err = ran(capsys, "lama", "--small")
    assert code == 2 and "did you mean 'llama'?" in err


def test_a_model_that_is_measured_in_part_fails_a_check(tmp_path, capsys):
    (tmp_path / "cut.py").write_text(
        textwrap.dedent("""
        import torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self, skip):
                super().__init__()
                self.skip, self.part = skip, nn.MultiheadAttention(8, 2, batch_first=True)

            def forward(self, x):
                y = self.part(x, x, x)[0]
                return x + y if self.skip else y

        def build():
            torch.manual_seed(0)
            return nn.Sequential(*(Block(n != 2) for n in range(5))), torch.randn(2, 6, 8)
        """)
    )
    code, out, _ = ran(capsys, f"{tmp_path}/cut.py:build", "--no-changes")
    assert code == 1 and "FAIL  stream-whole         5 blocks, 4 measured: 2 has no residual addition" in out
    assert ran(capsys, f"{tmp_path}/cut.py:build", "--no-changes", "--fail-if", "residual_last < 2")[0] == 1
    code, out, _ = ran(capsys, f"{tmp_path}/cut.py:build", "--no-changes", "--json")
    checks = [one for stream in json.loads(out)["streams"] for one in stream["results"]]
    assert code == 1 and "fail" in {one["verdict"] for one in checks if one["check"] == "stream-whole"}
