"""Guards a check of an example with padding, which attention does not look at."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import AutoModel, BloomConfig

from rankfall.check.named import FAIL, PASS, WARN
from rankfall.check.reads import heads_first
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


class Registers(Padded):
    """Puts registers before the tokens. `extend` makes their mask."""

    def __init__(self, extend) -> None:
        super().__init__()
        self.registers, self.extend = nn.Parameter(torch.randn(3, 16)), extend

    def forward(self, tokens, mask):
        x = torch.cat([self.registers.expand(len(tokens), -1, -1), self.embed(tokens)], 1)
        return self.encoder(x, src_key_padding_mask=self.extend(mask))[:, 3:]


class Layers(nn.Module):
    """Calls one layer after the other; each makes its mask of `pad`."""

    def __init__(self, *masks) -> None:
        super().__init__()
        self.embed, self.masks = nn.Embedding(30, 16), masks
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in masks)

    def encode(self, tokens, pad):
        x = self.embed(tokens)
        for layer, mask in zip(self.layers, self.masks):
            x = layer(x, src_key_padding_mask=mask(pad))
        return x

    def forward(self, tokens, mask):
        return self.encode(tokens, mask)


class Lengths(Layers):
    def forward(self, tokens, lengths):
        return self.encode(tokens, torch.arange(tokens.shape[1]) >= lengths[:, None])


class Numbers(Layers):
    def forward(self, tokens):
        return self.encode(tokens, tokens == 0)


class Pooled(Numbers):
    """Adds a mean over all tokens, padding as well, and returns tokens first."""

    def forward(self, tokens):
        x = super().forward(tokens)
        return (x + x.mean(1, keepdim=True)).transpose(0, 1)


class Zeroed(Layers):
    """Embeds padding as zeros, as ESM does."""

    def forward(self, tokens, mask):
        x = self.embed(tokens) * ~mask[..., None]
        return self.layers[0](x, src_key_padding_mask=mask)


class Frames(Layers):
    """Makes a token of three frames by a convolution of five, which reads padding at the border, as speech models do."""

    def forward(self, x, mask):
        x = F.avg_pool1d(x.mT, 5, 3, 2).mT
        return self.layers[0](x, src_key_padding_mask=mask[:, ::3])


class Rows(nn.Linear):
    """Adds the mask to whole rows of scores, which no softmax notices."""

    def forward(self, x, mask):
        scores = super().forward(x) @ x.mT / 4 - 1e4 * mask[:, :, None]
        return x + F.linear(scores.softmax(-1) @ x, self.weight)


class Queries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(30, 16), nn.Linear(16, 5)
        self.layers = nn.ModuleList(Rows(16, 16) for _ in range(3))

    def forward(self, tokens, mask):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x) * ~mask[..., None]


class Siamese(Layers):
    def forward(self, query, query_mask, document, document_mask):
        pairs = ((query, query_mask), (document, document_mask))
        return [self.encode(x, pad).masked_fill(pad[..., None], 0).sum(1) for x, pad in pairs]


class Translator(nn.Module):
    def __init__(self, memory=True) -> None:
        super().__init__()
        self.embed, self.memory = nn.Embedding(30, 16), memory
        self.both = nn.Transformer(16, 2, 2, 2, 32, batch_first=True)

    def forward(self, source, target):
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        pad = source == 0
        return self.both(
            self.embed(source), self.embed(target), tgt_mask=later, src_key_padding_mask=pad,
            memory_key_padding_mask=pad if self.memory else None,
        )  # fmt: skip


def keep(pad):
    return pad


X, PAD, LENGTHS = padded((12, 9, 10), 12), padded((12, 9, 10), 12) == 0, torch.tensor([12, 9, 10])
FULL = X.clamp_min(1)  # without tokens that look like padding
BOTH = (FULL, PAD, padded((8, 8, 8), 8), padded((5, 8, 6), 8) == 0)
HEALTHY = {
    "registers": (lambda: Registers(lambda pad: F.pad(pad, (3, 0))), (FULL, PAD)),
    "lengths": (lambda: Lengths(keep, keep), (FULL, LENGTHS)),
    "siamese": (lambda: Siamese(keep, keep), BOTH),
    "embeddings of zero": (lambda: Zeroed(keep), (FULL, PAD)),
    "frames": (lambda: Frames(keep), (torch.randn(3, 24, 16), torch.arange(24) >= torch.tensor([[24], [13], [17]]))),
    "float64 makes softmax in float32 of the least number": (
        lambda: AutoModel.from_config(BloomConfig(hidden_size=16, n_layer=2, n_head=2, vocab_size=30)),
        {"input_ids": X.flip(1), "attention_mask": (~PAD).long().flip(1)},
    ),
    "translator": (Translator, (X, padded((9, 9, 9), 9))),
    "two masks": (
        lambda: nn.Transformer(16, 2, 2, 2, 32, batch_first=True),
        {
            "src": torch.randn(3, 12, 16),
            "tgt": torch.randn(3, 9, 16),
            "src_key_padding_mask": PAD,
            "memory_key_padding_mask": PAD,
        },
    ),
}
SICK = {
    "registers, mask at the wrong end": (lambda: Registers(lambda pad: F.pad(pad, (0, 3))), (FULL, PAD), FAIL, "shifted"),
    "registers are hidden": (
        lambda: Registers(lambda pad: F.pad(pad, (3, 0), value=True)), (FULL, PAD), WARN, "does it hide registers",
    ),
    "length + 1": (lambda: Lengths(*[lambda pad: F.pad(pad, (1, 0))[:, :-1]] * 2), (FULL, LENGTHS), FAIL, "do all layers get this mask"),
    "length - 1": (lambda: Lengths(*[lambda pad: F.pad(pad, (0, 1), value=True)[:, 1:]] * 2), (FULL, LENGTHS), FAIL, "attention hides"),
    "a layer reads padding": (lambda: Layers(keep, lambda pad: None), (FULL, PAD), FAIL, "before layer 2, and not in it"),
    "rows of queries": (Queries, (FULL, PAD), FAIL, "on the axis of queries"),
    "masks of other samples": (lambda: Layers(keep, lambda pad: pad.roll(1, 0)), (FULL, PAD), FAIL, "do all layers get this mask"),
    "tokens first, pooled over padding": (lambda: Pooled(keep, keep), X, FAIL, "is it pooled over padding"),
    "another number is hidden": (lambda: Numbers(keep, lambda pad: None), X, WARN, "if 0 is padding"),
    "memory": (lambda: Translator(False), (X, padded((9, 9, 9), 9)), WARN, "of argument 1 have another output"),
}  # fmt: skip


def mask_result(build, inputs):
    torch.manual_seed(0)
    reports = check(build(), inputs, changes=False, only=("mask-works",))
    (result,) = [result for report in reports for result in report.results]
    return result


@pytest.mark.parametrize("name", HEALTHY)
def test_sound_masks_of_any_kind_pass(name):
    assert mask_result(*HEALTHY[name]).verdict == PASS


@pytest.mark.parametrize("name", SICK)
def test_a_mask_that_hides_other_tokens_than_the_inputs_say_is_seen(name):
    build, inputs, verdict, words = SICK[name]
    result = mask_result(build, inputs)
    assert result.verdict == verdict and words in result.sentence, result


def test_masks_for_heads_stand_in_the_order_of_samples():
    from rankfall.check.padding import masks_of
    from rankfall.streams.arguments import arguments_of

    table = PAD[:, None].expand(3, 12, 12)
    for repeated, wrong in ((table.repeat(2, 1, 1), True), (table.repeat_interleave(2, 0), False)):
        (mask,) = masks_of(arguments_of((X, repeated)), Layers(keep))
        assert mask.square and mask.by_head == wrong


def test_heads_are_found_on_any_axis():
    scores = torch.randn(2, 9, 9, 4)  # (B, T, S, H)
    for x, axis in ((scores, 2), (scores[:, :, :5], 2), (scores[0], 1), (torch.randn(2, 9, 4, 5), -1)):
        weights = heads_first(x.softmax(axis), axis, 9)
        assert weights.shape[1:3] == (4, 9) and torch.allclose(weights.sum(-1), torch.ones(()))
