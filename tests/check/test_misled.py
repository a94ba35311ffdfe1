"""Guards against numbers that mislead: states that are not finite, a token or a channel that hides the others, inputs that are read again."""

from __future__ import annotations

import stream_kinds as kinds
import torch
from torch import nn

from rankfall.check.report import check
from rankfall.check.table import text
from rankfall.cli import main


class Masked(nn.Module):
    """Attention whose mask has the wrong sense: the last token has nothing to read."""

    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(kinds.WIDTH, 2, batch_first=True)

    def forward(self, x):
        mask = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
        return x + self.heads(x, x, x, attn_mask=mask)[0]


def test_states_that_are_not_finite_are_a_finding_and_nothing_rests_on_them():
    torch.manual_seed(0)
    model = kinds.Stack(Masked)
    model.blocks[0] = kinds.Block()
    (report,) = check(model, kinds.states())
    assert report.depth == kinds.DEPTH
    (finding,) = report.findings
    assert finding == (
        "states are not finite: the first is the one after layer 2, blocks.1, which has NaN or infinity; the first module that returns "
        "such numbers is blocks.1.heads"
    )
    assert report.verdict == [f"Found: {finding}.", "What becomes of the tokens is not known."]
    said = text([report], "model")
    assert not [word for word in ("mix", "both ways", "one way", "norm on", "apart", "nan") if word in said]
    assert report.layers[1].residual is not None and report.layers[2].residual is None and not report.bands


def test_the_exit_status_of_states_that_are_not_finite_is_3(tmp_path, capsys):
    (tmp_path / "infinite.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Layer(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.map = nn.Linear(8, 8)\n"
        "    def forward(self, x):\n        return x + self.map(x) / 0.0\n"
        "def build():\n    return nn.Sequential(Layer(), Layer(), Layer())\n"
        "def batch():\n    return torch.randn(2, 5, 8)\n"
    )
    file = f"{tmp_path}/infinite.py"
    assert main(["check", f"{file}:build", "--inputs", f"{file}:batch"]) == 3
    assert "the first module that returns such numbers is 0" in capsys.readouterr().out
