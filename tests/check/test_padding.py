"""Guards a check of an example with padding, which attention does not look at."""

import pytest
import torch
from torch import nn

from rankfall.check.report import check
from rankfall.streams.examine import examine


class Padded(nn.Module):
    """Makes its mask of its tokens; 0 is padding."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.embed, self.causal = nn.Embedding(30, 16), causal
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, tokens):
        later = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        return self.encoder(self.embed(tokens), mask=later, src_key_padding_mask=tokens == 0)


def padded(lengths, tokens=20, left=False):
    x = torch.randint(1, 30, (len(lengths), tokens), generator=torch.Generator().manual_seed(0))
    for row, length in zip(x, lengths):
        (row[: tokens - length] if left else row[length:]).fill_(0)
    return x


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lengths", [(12, 5, 20), (9,)])
def test_attention_is_seen_to_mix_where_tokens_in_the_middle_are_padding(lengths, left, causal):
    if left and causal:  # rows before the first token see nothing
        return
    torch.manual_seed(0)
    (flow,) = examine(Padded(causal), padded(lengths, left=left)).flows
    assert [branch.mixes for branch in flow.branches] == [True, False] * 3
    assert flow.causal == causal


class Biased(Padded):
    """Adds a bias for later tokens to all scores."""

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1]).float()
        return self.encoder(self.embed(tokens), mask=0.1 * (places - places[:, None]))


def test_the_note_on_padding_and_the_answer_on_order_are_plain():
    """A reader took "get no weight, as padding does" for a fault, and "other states follow" for nothing."""
    torch.manual_seed(0)
    (report,) = check(Padded(), padded((12, 5, 20)), changes=False)
    assert report.notes[0].startswith(
        "no token reads 23 of 60 tokens, which all numbers count in. If they are padding,"
    )
    (report,) = check(Biased(), padded((20, 20)), changes=False)
    known = report.result("positions-differ").sentence
    assert known == "the order of tokens is known: reversing them changes the states"
