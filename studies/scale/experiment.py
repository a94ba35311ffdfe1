"""Measure how much of the residual models of the transformers library keep at birth when the matrices of their layers are scaled."""

import math
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from rankfall import RankfallError, relative_residual
from studies.common import Rows, Unit

TOKENS, SAMPLES, SYMBOLS = 32, 2, 100  # of a text; texts; of the vocabulary
GAINS = (0.05, 0.15, 0.3, 0.5, 0.8, 1.5, 2.5, 5.0)  # standard deviation of a matrix times the root of its inputs
ENTERING = (1.0, 0.02)  # RMS of the state that enters the first layer
# Place of the norm, as the census measures it -> types; the tenth has those before the bar. Most types with norms after the addition are
# bidirectional and most with norms before the branch causal, so each place has exceptions: openai-gpt is causal, roberta-prelayernorm and
# megatron-bert are bidirectional.
PLACES = {
    "after the addition": "bert roberta electra mpnet openai-gpt | albert nomic_bert roformer",
    "before the branch": "gpt2 llama gpt_neox phi roberta-prelayernorm megatron-bert | opt stablelm gptj cohere",
    "before and inside the branch": "qwen3 |",
    "before and behind the branch": "gemma2 glm4 |",
    "before, behind and inside the branch": "gemma3_text | afmoe",
    "behind the branch": "olmo2 | olmo3",
}
COPIES = ("roberta", "electra")  # the same as BERT at these sizes; the full size leaves them out


def units(size: str) -> list[Unit]:
    if size == "tiny":
        grid = [(32, 3)]
    elif size == "tenth":
        grid = [(32, 6), (128, 6), (32, 24), (128, 24), (32, 96)]
    else:
        grid = [(w, d) for d, w in product((6, 24, 48, 96), (32, 128, 512, 1024)) if w * d <= 1024 * 8]
    types = [
        (place, kind)
        for place, kinds in PLACES.items()
        for kind in (kinds.replace("|", "") if size == "full" else kinds.partition("|")[0]).split()
        if (size != "tiny" or kind in ("bert", "gpt2")) and not (size == "full" and kind in COPIES)
    ]
    return [
        {"place": place, "type": kind, "width": width, "depth": depth, "seed": seed}
        for width, depth in grid
        for place, kind in types
        for seed in range(2)
    ]


def measure(unit: Unit, device: str) -> Rows:
    """Return a row for each size of the entering state x scale of the weights: the kept share of the residual and the growth of RMS."""
    torch.manual_seed(unit["seed"])
    model = build(unit["type"], unit["width"], unit["depth"]).to(device).eval()
    blocks = blocks_of(model, unit["depth"])
    matrices = {w: torch.randn_like(w) for block in blocks for w in block.parameters() if w.dim() > 1}
    transposed = {m.weight for m in model.modules() if type(m).__name__ == "Conv1D"}  # (inputs, outputs), as in GPT-2
    tokens = torch.randint(5, SYMBOLS, (SAMPLES, TOKENS), device=device)
    rows = []
    for entering, gain in product(ENTERING, GAINS):
        with torch.no_grad():
            for matrix, drawn in matrices.items():
                matrix.copy_(drawn * (gain * matrix.shape[0 if matrix in transposed else -1] ** -0.5))
            first, last = ends(model, blocks, tokens, entering)
        kept = float(relative_residual(last).mean() / relative_residual(first).mean())
        growth = float(last.square().mean().sqrt() / first.square().mean().sqrt())
        rows.append({"entering": entering, "gain": gain, "kept": kept, "growth": growth})
    return rows


def build(kind: str, width: int, depth: int) -> nn.Module:
    """Return a model of the library at this size, with heads of 16 and MLPs of four times the width."""
    from transformers import AutoConfig, AutoModel

    heads = width // 16
    sizes: dict[str, Any] = {
        "vocab_size": SYMBOLS,
        "hidden_size": width,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": 4 * width,
        "embedding_size": width,
        "head_dim": 16,
        "max_position_embeddings": 64,
        "word_embed_proj_dim": width,
        "ffn_dim": 4 * width,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "num_hidden_groups": depth,
        "rotary_dim": 8,
        "query_pre_attn_scalar": 16,
        "layer_types": None,
        "use_cache": False,
    }
    default = AutoConfig.for_model(kind)
    names = {**default.to_dict(), **dict.fromkeys(getattr(default, "attribute_map", {}))}
    return AutoModel.from_config(AutoConfig.for_model(kind, **{k: v for k, v in sizes.items() if k in names}))


def blocks_of(model: nn.Module, depth: int) -> list[nn.Module]:
    """Return the layers: the first `nn.ModuleList` of this length."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return list(module)
    raise RankfallError(f"{type(model).__name__} has no list of {depth} layers")


def ends(model: nn.Module, blocks: list[nn.Module], tokens: Tensor, entering: float) -> tuple[Tensor, Tensor]:
    """Return the states (B, T, D) that enter the first layer, scaled to the RMS `entering`, and that leave the last."""
    states: dict[str, Tensor] = {}

    def enter(
        module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        by_keyword = "hidden_states" in kwargs
        x = kwargs["hidden_states"] if by_keyword else args[0]
        x = x * (entering / x.square().mean().sqrt())
        states["first"] = x.double()
        return (args, kwargs | {"hidden_states": x}) if by_keyword else ((x, *args[1:]), kwargs)

    def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        states["last"] = (output if isinstance(output, Tensor) else output[0]).double()

    hooks = [blocks[0].register_forward_pre_hook(enter, with_kwargs=True), blocks[-1].register_forward_hook(leave)]
    try:
        model(input_ids=tokens)
    finally:
        for hook in hooks:
            hook.remove()
    if not math.isfinite(float(states["last"].sum())):
        raise RankfallError(f"{type(model).__name__}: the last state is not finite")
    return states["first"], states["last"]
