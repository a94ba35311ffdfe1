"""Types of the transformers library at birth: how much of the residual the layers keep when their matrices are scaled."""

import math
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from rankfall import RankfallError, relative_residual
from studies.common import Rows, Unit

TOKENS, SAMPLES, SYMBOLS = 32, 2, 100
GAINS = (0.05, 0.15, 0.3, 0.5, 0.8, 1.5, 2.5, 5.0)
ENTERING = (1.0, 0.02)  # RMS of the state that enters the first layer
PLACES = {  # as the census measures it; the tenth has the types before the bar. Most types with norms after are bidirectional, and most
    # with norms before causal, so each has exceptions: openai-gpt is causal, roberta-prelayernorm and megatron-bert are bidirectional.
    "after the addition": "bert roberta electra mpnet openai-gpt | albert nomic_bert roformer",
    "before the branch": "gpt2 llama gpt_neox phi roberta-prelayernorm megatron-bert | opt stablelm gptj cohere",
    "before and inside the branch": "qwen3 |",
    "before and behind the branch": "gemma2 glm4 |",
    "before, behind and inside the branch": "gemma3_text | afmoe",
    "behind the branch": "olmo2 | olmo3",
}
COPIES = ("roberta", "electra")  # of BERT at these sizes


def units(size: str) -> list[Unit]:
    if size == "tiny":
        grid = [(32, 3)]
    elif size == "tenth":
        grid = [(32, 6), (128, 6), (32, 24), (128, 24), (32, 96)]
    else:
        grid = [(w, d) for d, w in product((6, 24, 48, 96), (32, 128, 512, 1024)) if w * d <= 1024 * 8]
    types = [
        (place, one)
        for place, known in PLACES.items()
        for one in (known.replace("|", "") if size == "full" else known.partition("|")[0]).split()
        if (size != "tiny" or one in ("bert", "gpt2")) and not (size == "full" and one in COPIES)
    ]
    return [
        {"place": place, "type": kind, "width": width, "depth": depth, "seed": seed}
        for width, depth in grid
        for place, kind in types
        for seed in range(2)
    ]


def measure(unit: Unit, device: str) -> Rows:
    torch.manual_seed(unit["seed"])
    model = build(unit["type"], unit["width"], unit["depth"]).to(device).eval()
    blocks = blocks_of(model, unit["depth"])
    matrices = {one: torch.randn_like(one) for block in blocks for one in block.parameters() if one.dim() > 1}
    transposed = {one.weight for one in model.modules() if type(one).__name__ == "Conv1D"}  # inputs first, as in GPT-2
    tokens = torch.randint(5, SYMBOLS, (SAMPLES, TOKENS), device=device)
    rows = []
    for entering, gain in product(ENTERING, GAINS):
        with torch.no_grad():
            for matrix, drawn in matrices.items():
                matrix.copy_(drawn * (gain * matrix.shape[0 if matrix in transposed else 1] ** -0.5))
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
    known = AutoConfig.for_model(kind)
    names = {**known.to_dict(), **dict.fromkeys(getattr(known, "attribute_map", {}))}
    return AutoModel.from_config(AutoConfig.for_model(kind, **{k: v for k, v in sizes.items() if k in names}))


def blocks_of(model: nn.Module, depth: int) -> list[nn.Module]:
    """Return the layers: the first list of as many modules as there are layers."""
    for one in model.modules():
        if isinstance(one, nn.ModuleList) and len(one) == depth:
            return list(one)
    raise RankfallError(f"{type(model).__name__} has no list of {depth} layers")


def ends(model: nn.Module, blocks: list[nn.Module], tokens: Tensor, entering: float) -> tuple[Tensor, Tensor]:
    """Return the states (B, T, D) that enter the first layer, scaled to an RMS, and leave the last."""
    found: dict[str, Tensor] = {}

    def enter(
        module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        inside = "hidden_states" in kwargs
        x = kwargs["hidden_states"] if inside else args[0]
        x = x * (entering / x.square().mean().sqrt())
        found["first"] = x.double()
        return (args, kwargs | {"hidden_states": x}) if inside else ((x, *args[1:]), kwargs)

    def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        found["last"] = (output if isinstance(output, Tensor) else output[0]).double()

    hooks = [blocks[0].register_forward_pre_hook(enter, with_kwargs=True), blocks[-1].register_forward_hook(leave)]
    try:
        model(input_ids=tokens)
    finally:
        for hook in hooks:
            hook.remove()
    if not math.isfinite(float(found["last"].sum())):
        raise RankfallError(f"{type(model).__name__}: the last state is not finite")
    return found["first"], found["last"]
