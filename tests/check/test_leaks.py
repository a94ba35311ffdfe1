"""Leaks between inputs and outputs, leaks that make all layers read both ways, and labels that the output reads."""

import pytest
import torch
import unusual_models as models
from torch import nn
from torch.nn import functional as F
from unusual_models import MLP, Apply, Attention, Block, D, Language, T, every, ids

from rankfall.check.named import FAIL, NONE, PASS, WARN
from rankfall.check.report import check
from rankfall.streams.record import map_tensors


def behind(change, shape=lambda x: x):
    """Return a decoder whose head reads states that are changed, and whose logits have another shape."""
    model = models.language(Attention)
    model.norm = nn.Sequential(model.norm, Apply(change))
    model.head = nn.Sequential(model.head, Apply(shape))
    return model


def advance(x):
    return torch.cat([x[:, 1:], x[:, -1:]], 1)


def ahead(x):
    return F.pad(x.mT, (2, 0)).unfold(-1, 3, 1).mean(-1).mT  # the mean of the last three tokens


def circular(x):
    kernel = torch.fft.rfft(0.5 ** torch.arange(T, dtype=x.dtype), n=T)
    return torch.fft.irfft(torch.fft.rfft(x.mT, n=T) * kernel, n=T).mT


class Posterior(Language):
    """A decoder that reads a code of all tokens, which it returns, too."""

    def __init__(self):
        super().__init__(lambda: Block(Attention()))
        self.code, self.back = nn.Linear(D, 4), nn.Linear(4, D)

    def forward(self, numbers):
        code = self.code(self.embed(numbers).tanh().mean(1))
        x = self.embed(numbers) + self.places.weight + self.back(code)[:, None]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)), code


class Routed(Language):
    """A mixture of depths: a router chooses half of the tokens for each block."""

    def forward(self, numbers):
        x = self.embed(numbers) + self.places.weight
        for block in self.blocks:
            chosen = x[..., 0].topk(T // 2, 1).indices.sort(1).values[..., None].expand(-1, -1, D)
            part = x.gather(1, chosen)
            x = x.scatter_add(1, chosen, block(part) - part)
        return self.head(self.norm(x))


def mixing(mixer, norm=nn.LayerNorm):
    return lambda: Language(lambda: Block(nn.Sequential(MLP(), Apply(mixer)), norm=norm))


def over_time(width):
    return nn.LayerNorm((T, width))


def entropy(shift):
    return lambda logits: F.cross_entropy(logits[:, : T - shift].flatten(0, 1), ids()[:, shift:].flatten())


def both():
    return models.language(lambda: Attention(every))


@pytest.mark.parametrize(
    ("make", "loss", "name", "verdict", "words"),
    [
        (lambda: behind(advance), None, "no-future-leak", FAIL, "step 11 of 12 changes with step 12"),
        (lambda: behind(advance, lambda x: x.mT), None, "no-future-leak", FAIL, "step 11 of 12"),
        (lambda: behind(advance, lambda x: x.flatten(0, 1)), None, "no-future-leak", FAIL, "step 11 of 12"),
        (lambda: behind(advance, lambda x: x[..., 0]), None, "no-future-leak", FAIL, "step 11 of 12"),
        (lambda: behind(lambda x: x, lambda x: x[..., 0]), None, "no-future-leak", PASS, ""),
        (mixing(ahead), None, "no-future-leak", PASS, "causal in 3"),
        (mixing(ahead, over_time), None, "no-future-leak", FAIL, "causal but for layer_norm"),
        (mixing(circular), None, "no-future-leak", WARN, "wraps round"),
        (Posterior, None, "no-future-leak", PASS, "a code of all tokens"),
        (lambda: Routed(lambda: Block(Attention())), None, "no-future-leak", WARN, "causal but for topk"),
        (both, entropy(1), "no-future-leak", FAIL, "the label of each token is the next one"),
        (both, entropy(0), "no-future-leak", NONE, "reads both ways"),
        (models.language, entropy(0), "initial-loss", WARN, "labels not shifted"),
        (models.language, entropy(1), "initial-loss", PASS, ""),
        (both, entropy(0), "initial-loss", PASS, ""),
    ],
)  # fmt: skip
def test_a_leak_is_named(make, loss, name, verdict, words):
    torch.manual_seed(0)
    model = models.language(Attention) if make is models.language else make()
    (report,) = check(model, ids(), changes=False, loss=loss, only=(name,))
    assert report.results[0].verdict == verdict and words in report.results[0].sentence, report.results


def test_a_model_that_returns_its_loss_is_not_judged_by_a_loss_of_zeros():
    class Own(Language):
        def forward(self, numbers):
            return 20 + super().forward(numbers).logsumexp(-1).mean()

    (report,) = check(
        Own(lambda: Block(Attention(every))), ids(), changes=False, loss=lambda x: x, only=("initial-loss",)
    )
    assert report.results[0].verdict == NONE and "returns its loss" in report.results[0].sentence


def test_a_loss_reads_a_model_output_by_its_attributes():
    transformers = pytest.importorskip("transformers")
    mapped = map_tensors(transformers.modeling_outputs.CausalLMOutput(logits=torch.ones(2)), lambda x: x + 1)
    assert mapped.logits.tolist() == [2, 2]


def test_lengths_among_the_outputs_stay_as_they_are_for_a_guess():
    class Timed(Language):
        def forward(self, numbers):
            return super().forward(numbers).log_softmax(-1), torch.full((len(numbers),), numbers.shape[1])

    def loss(output):
        targets = torch.ones(len(output[0]), 3, dtype=torch.long)
        return F.ctc_loss(output[0].transpose(0, 1), targets, output[1], torch.full((len(targets),), 3))

    (report,) = check(Timed(lambda: Block(Attention(every))), ids(), changes=False, loss=loss, only=("initial-loss",))
    assert (
        "that of equal probabilities" in report.results[0].sentence
    )  # it failed, with lengths that were one too large
