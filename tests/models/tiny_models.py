"""Small random models of many families: three layers, no downloads. And, for each, one layer written out by hand with parts cut away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

WIDTH, LAYERS, VOCABULARY, TOKENS = 24, 3, 99, 7
BARE = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "vocab_size": VOCABULARY}
SIZES = {**BARE, "intermediate_size": 40}
GROUPED = {**SIZES, "num_key_value_heads": 2}
PATCHES = {**{key: size for key, size in SIZES.items() if key != "vocab_size"}, "image_size": 32, "patch_size": 8}
EXPERTS = {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}
GPT = {"vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": 4}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": SIZES,
    "albert": {**SIZES, "embedding_size": 16},
    "roberta": SIZES,
    "modernbert": {**SIZES, "pad_token_id": 0},
    "llama": GROUPED,
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 8},
    "gemma2": {**GROUPED, "head_dim": 8},
    "gpt_neox": SIZES,
    "cohere": GROUPED,
    "mixtral": EXPERTS,
    "gpt_oss": {**EXPERTS, "head_dim": 8},  # sinks beside the tokens
    "siglip_vision_model": PATCHES,  # pools
    "granite": {**GROUPED, "residual_multiplier": 0.5},
    "xlnet": {"vocab_size": VOCABULARY, "d_model": WIDTH, "n_layer": LAYERS, "n_head": 4, "d_inner": 40},
    "gpt2": GPT,
    "distilbert": {"vocab_size": VOCABULARY, "dim": WIDTH, "n_layers": LAYERS, "n_heads": 4, "hidden_dim": 40},
    "t5": {"vocab_size": VOCABULARY, "d_model": WIDTH, "d_kv": 6, "d_ff": 40, "num_layers": LAYERS, "num_heads": 4},
    "opt": {**BARE, "ffn_dim": 40, "word_embed_proj_dim": WIDTH},
    "vit": PATCHES,
    "gptj": {**GPT, "rotary_dim": 4},
    "falcon": BARE,
    "bloom": {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "n_layer": LAYERS, "n_head": 4},
}
PICTURES = ("vit", "siglip_vision_model")
PARALLEL = ("gptj", "gpt_neox", "falcon", "cohere")  # attention and MLP side by side, one skip for both


@dataclass
class Tiny:
    """A small model, its inputs, and its sizes."""

    family: str
    model: torch.nn.Module
    inputs: dict[str, Tensor]
    sizes: tuple[int, ...] = ()  # layers, width and heads


def tiny(family: str, seed: int = 0) -> Tiny:
    """Return a model in float32 and eval mode, with weights large enough that no part of a layer is negligible."""
    from rankfall.models.load import load
    from rankfall.models.source import ModelSource

    loaded = load(ModelSource(family, config=CONFIGS[family]), seed=seed)
    model = loaded.model
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    if family in PICTURES:
        inputs = {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    else:
        inputs = {"input_ids": torch.randint(5, VOCABULARY, (2, TOKENS), generator=generator)}
    return Tiny(family, model, inputs, (loaded.layers, loaded.width, loaded.heads))


@dataclass(frozen=True)
class Layer:
    """One layer in pieces: attention and MLP branches of the state they are given, and norms; identity where there is none."""

    attend: Callable[[Tensor], Tensor]
    mlp: Callable[[Tensor], Tensor]
    norm1: Callable[[Tensor], Tensor]
    norm2: Callable[[Tensor], Tensor]
    pre: bool = True

    def run(self, state: Tensor, *, attention_skip: bool, mlp: bool, mlp_skip: bool) -> Tensor:
        """The layer written out: what should be left when additions are cut."""
        if self.pre:
            middle = self.attend(self.norm1(state)) + (state if attention_skip else 0)
            if not mlp:
                return middle
            return self.mlp(self.norm2(middle)) + (middle if mlp_skip else 0)
        middle = self.norm1(self.attend(state) + (state if attention_skip else 0))
        if not mlp:
            return middle
        return self.norm2(self.mlp(middle) + (middle if mlp_skip else 0))


def same(state: Tensor) -> Tensor:
    """No norm here."""
    return state


def layer(tiny: Tiny, number: int) -> Layer:
    """The pieces of layer `number` (0, 1, ...), as the family's code calls them, in the family's own order."""
    model: Any = tiny.model
    tokens = tiny.inputs["input_ids"].shape[1] if "input_ids" in tiny.inputs else 0
    places = torch.arange(tokens)[None]
    dtype = next(model.parameters()).dtype
    causal = torch.full((tokens, tokens), torch.finfo(dtype).min, dtype=dtype).triu(1)[None, None]
    family = tiny.family
    if family in ("bert", "roberta"):
        it = model.encoder.layer[number]
        out = it.attention.output
        mlp = lambda x: it.output.dense(it.intermediate(x))  # noqa: E731
        return Layer(lambda x: out.dense(it.attention.self(x)[0]), mlp, out.LayerNorm, it.output.LayerNorm, pre=False)
    if family == "albert":
        it = model.encoder.albert_layer_groups[0].albert_layers[0]
        attention = it.attention
        return Layer(
            lambda x: _albert(attention, x), it.ff_chunk, attention.LayerNorm, it.full_layer_layer_norm, pre=False
        )
    if family == "distilbert":
        it = model.transformer.layer[number]
        return Layer(lambda x: it.attention(x)[0], it.ffn, it.sa_layer_norm, it.output_layer_norm, pre=False)
    if family == "xlnet":
        it = model.layer[number]
        ff = it.ff
        feed = lambda x: ff.layer_2(ff.activation_function(ff.layer_1(x)))  # noqa: E731
        return Layer(lambda x: _xlnet(model, it.rel_attn, x), feed, it.rel_attn.layer_norm, ff.layer_norm, pre=False)
    if family == "gpt2":
        it = model.h[number]
        return Layer(lambda x: it.attn(x, attention_mask=causal)[0], it.mlp, it.ln_1, it.ln_2)
    if family in ("llama", "qwen2", "qwen3"):
        it = model.layers[number]

        def turned(x: Tensor) -> Tensor:
            rotary = model.rotary_emb(x, places)
            return it.self_attn(x, position_embeddings=rotary, attention_mask=causal)[0]

        return Layer(turned, it.mlp, it.input_layernorm, it.post_attention_layernorm)
    if family == "modernbert":
        it = model.layers[number]

        def rotated(x: Tensor) -> Tensor:
            rotary = model.rotary_emb(x, places, it.attention_type)
            return it.attn(x, position_embeddings=rotary)[0]  # short texts: the local window covers them

        return Layer(rotated, it.mlp, it.attn_norm, it.mlp_norm)
    if family == "vit":
        it = (model.layers if hasattr(model, "layers") else model.encoder.layer)[number]
        return Layer(lambda x: it.attention(x)[0], it.mlp, it.layernorm_before, it.layernorm_after)
    if family == "t5":
        it = model.encoder.block[number].layer
        bias = lambda x: model.encoder.block[0].layer[0].SelfAttention.compute_bias(tokens, tokens)  # noqa: E731
        attend = lambda x: it[0].SelfAttention(x, position_bias=bias(x))[0]  # noqa: E731
        return Layer(attend, it[1].DenseReluDense, it[0].layer_norm, it[1].layer_norm)
    if family == "opt":
        it = model.decoder.layers[number]
        mlp = lambda x: it.fc2(it.activation_fn(it.fc1(x)))  # noqa: E731
        return Layer(
            lambda x: it.self_attn(x, attention_mask=causal)[0], mlp, it.self_attn_layer_norm, it.final_layer_norm
        )
    raise KeyError(family)


WRITTEN_OUT = (
    *("bert", "roberta", "albert", "distilbert", "xlnet", "gpt2", "llama", "qwen2", "qwen3", "modernbert", "vit"),
    *("t5", "opt"),
)


def _albert(attention: Any, x: Tensor) -> Tensor:
    """Scaled dot products by hand: (B, T, D) -> (B, T, D) without the skip that the family's module adds inside."""
    batch, tokens, _ = x.shape
    heads, width = attention.num_attention_heads, attention.attention_head_size
    query, key, value = (
        part(x).view(batch, tokens, heads, width).transpose(1, 2)
        for part in (attention.query, attention.key, attention.value)
    )
    weights = torch.softmax(query @ key.transpose(-1, -2) / width**0.5, -1)
    return attention.dense((weights @ value).transpose(1, 2).reshape(batch, tokens, -1))


def _xlnet(model: Any, attention: Any, x: Tensor) -> Tensor:
    """(B, T, D) -> (B, T, D): content and position scores, then the output map, without `post_attention`'s skip and norm."""
    h = x.transpose(0, 1)
    tokens = h.shape[0]
    position = model.relative_positional_encoding(tokens, tokens, bsz=h.shape[1]).to(h.dtype)
    query, key, value = (torch.einsum("ibh,hnd->ibnd", h, weight) for weight in (attention.q, attention.k, attention.v))
    key_r = torch.einsum("ibh,hnd->ibnd", position, attention.r)
    mixed = attention.rel_attn_core(query, key, value, key_r)
    return torch.einsum("ibnd,hnd->ibh", mixed, attention.o).transpose(0, 1)
