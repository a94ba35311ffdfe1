"""Views of the attention layers of a model (identity/views.py), read from one forward pass of the model's own code.

During the pass, every product and every move of a tensor is followed. The softmax gives the weights; the product of weights and another
tensor gives the values; the linear map that produces the values gives what the attention reads; the linear map of the result gives each
head's part of the output. No layout of a model family is assumed. Each layer is checked: the parts must reproduce what the model
computed.
"""

from collections.abc import Iterator
from typing import Any
from unicodedata import category

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.identity.views import KINDS, AttentionView, JoinView, NormView
from rankfall.models.follow import Followed, Follower
from rankfall.models.subject import Subject, failing
from rankfall.streams.arguments import run_model
from rankfall.streams.frames import Frames

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}
MASKED = -1e30  # scores below this are masked; masks of float32 models kept in float64 are -3.4e38


@torch.no_grad()
def model_views(subject: Subject, start: int, stop: int) -> Iterator[AttentionView]:
    """Yield the view of each layer in turn, for samples start .. stop.

    All layers of one pass are in memory, so take few samples at a time.
    """
    holder: list[Follower] = []
    with (
        failing(subject.request, "while its attention is read"),
        Frames(subject.loaded.model, on_exit=lambda *exit_: holder[0].leave(*exit_)) as frames,
    ):
        holder.append(Follower(subject.stream.flow, frames, subject.loaded.heads))
        with holder[0]:
            run_model(subject.loaded.model, subject.inputs(start, stop))
    layers = holder[0].layers
    if len(layers) != subject.layers:
        raise RankfallError(
            f"model {subject.request.source.name!r}: attention found in {len(layers)} of {subject.layers} layers"
        )
    ids, kinds = _tokens(subject, start, stop)
    for number in range(1, subject.layers + 1):
        yield _view(subject, number, layers.pop(number), ids, kinds)


def _view(subject: Subject, layer: int, followed: Followed, ids: Tensor | None, kinds: Tensor) -> AttentionView:
    where = f"model {subject.request.source.name!r}, layer {layer}"
    if followed.read is None or followed.output is None or followed.attended is None:
        missing = "what its values are made from" if followed.read is None else "the linear map of its output"
        raise RankfallError(f"{where}: {missing} was not found; this form of attention is not supported")
    weights = followed.weights.double()  # (B, H, T, T)
    batch, heads, tokens, _ = weights.shape
    width = subject.loaded.width

    def states(x: Tensor) -> Tensor:
        """Return (B, T, D), (T, B, D) or (B*T, D) as (B, T, D) in float64."""
        turned = x.dim() == 3 and subject.stream.batch_axis == 1
        return (x.transpose(0, 1) if turned else x).reshape(batch, tokens, -1).double()

    weight, bias = followed.output
    attended = states(followed.attended)
    output = weight.detach().double().reshape(heads, -1, width)
    view = AttentionView(
        layer=layer,
        inputs=states(followed.read),
        weights=weights,
        values=followed.values.double(),
        output=output,
        bias=output.new_zeros(width) if bias is None else bias.detach().double(),
        score_width=followed.score_width,
        allowed=(followed.scores > MASKED).flatten(0, 1).any(0)[:, :tokens],
        join=_join(subject.loaded.model, followed, attended, states),
        kinds=kinds if kinds.shape[1] == tokens else _plain(batch, tokens),
        ids=ids,
    )
    if view.values.shape[-1] != output.shape[1] or not _same(view.attend(), attended, subject.dtype):
        raise RankfallError(
            f"{where}: the attention is not sum_h A_h V_h H_h + b of the parts that were found (a gate?), which is not supported"
        )
    return view


def _same(a: Tensor, b: Tensor, dtype: torch.dtype) -> bool:
    scale = float(b.abs().max())
    return float((a - b).abs().max()) <= TOLERANCE[dtype] * max(scale, 1e-30)


def _join(model: nn.Module, followed: Followed, attended: Tensor, states: Any) -> JoinView | str:
    """Return the residual addition, if it adds a multiple of the attention's output, and the norm after it, or the reason."""
    if followed.skip is None or followed.branch is None or followed.total is None:
        return "no residual addition was found"
    skip, branch = states(followed.skip), states(followed.branch)
    factor = float((branch * attended).sum() / attended.square().sum())
    if not _same(factor * attended, branch, followed.skip.dtype):
        return "the residual does not add the attention alone: a norm or another branch comes between"
    if followed.state is None or torch.equal(states(followed.state), states(followed.total)):
        return JoinView(skip, factor, None)  # the sum stays on the stream as it is
    if followed.norm is None or not torch.equal(states(followed.state), states(followed.norm[1])):
        return "what comes between the residual addition and the MLP's is not one norm"
    module = dict(model.named_modules())[followed.norm[0]]
    norm = _norm(module)
    if norm is None or not _same(norm(states(followed.total)), states(followed.norm[1]), followed.skip.dtype):
        return f"the form of the norm {type(module).__name__} is not known"
    return JoinView(skip, factor, norm)


def _norm(module: Any) -> NormView | None:
    eps = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    if eps is None or getattr(module, "weight", None) is None:
        return None
    gain = module.weight.detach().double()
    bias = getattr(module, "bias", None)
    return NormView(
        gain, torch.zeros_like(gain) if bias is None else bias.detach().double(), eps, isinstance(module, nn.LayerNorm)
    )


def _tokens(subject: Subject, start: int, stop: int) -> tuple[Tensor | None, Tensor]:
    """Return ids and kinds of the tokens (B, T)."""
    part = subject.batch.part(start, stop)
    if "input_ids" not in part:
        return None, _plain(stop - start, subject.tokens)
    ids = part["input_ids"]
    kinds = _plain(*ids.shape)
    for number in ids.unique().tolist():
        kinds[ids == number] = KINDS.index(kind_of(number, subject.batch.pieces.get(number, ""), subject.batch.special))
    kinds[:, 0] = KINDS.index("first")
    return ids, kinds


def _plain(samples: int, tokens: int) -> Tensor:
    kinds = torch.full((samples, tokens), KINDS.index("other"))
    kinds[:, 0] = KINDS.index("first")
    return kinds


def kind_of(number: int, piece: str, special: frozenset[int]) -> str:
    """Return `separator` for special tokens, `punctuation` for pieces of punctuation marks alone (Unicode categories P), else `other`."""
    if number in special:
        return "separator"
    bare = piece.removeprefix("##").strip("Ġ▁ ")
    return "punctuation" if bare and all(category(letter).startswith("P") for letter in bare) else "other"
