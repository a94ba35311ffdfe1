"""Sizes of well-known checkpoints, and the variants of the published code where they differ from a clean cut.

`SIZES` lists the values that differ from the library's defaults, so that an initialisation needs no network. For other checkpoints, pass
a folder with a `config.json`.

The published code removes the MLP by replacing modules with the identity. In BERT and XLNet that removes the MLP with its skip
and its norm, as the clean definition does. ALBERT's layer still computes norm(gelu(h) + h) around the two identities, so a gelu
without weights, a skip and a norm stay in the variants SAN and SAN+skip. SAN+MLP keeps the MLP's skip in all three.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankfall.errors import RankfallError
from rankfall.streams.cuts import Variant

# hub name -> (model type, config values)
SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert-base-cased": ("bert", {"vocab_size": 28996}),
    "bert-base-uncased": ("bert", {}),
    "albert-base-v2": (
        "albert",
        {
            "hidden_size": 768,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "embedding_size": 128,
            "hidden_dropout_prob": 0,
            "attention_probs_dropout_prob": 0,
        },
    ),
    "xlnet-base-cased": ("xlnet", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}),
    "distilbert-base-uncased": ("distilbert", {}),
    "roberta-base": (
        "roberta",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "gpt2": ("gpt2", {}),
    "t5-small": ("t5", {}),
    "facebook/opt-125m": ("opt", {}),
    "google/vit-base-patch16-224": ("vit", {}),
    "answerdotai/ModernBERT-base": ("modernbert", {}),
    "Qwen/Qwen2.5-0.5B": (
        "qwen2",
        {
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-6,
        },
    ),
    "meta-llama/Llama-2-7b-hf": ("llama", {}),
}


# model type -> modules that the published code replaces by the identity while the rest of the MLP's code runs on
IDENTITY: dict[str, tuple[str, ...]] = {"bert": (), "xlnet": (), "albert": ("ffn", "ffn_output")}


def published(variant: Variant, model_type: str) -> Variant:
    """Return the variant as published for this model type."""
    if model_type not in IDENTITY:
        raise RankfallError(
            f"definition: published exists for {', '.join(sorted(IDENTITY))}; for {model_type!r} use definition: clean"
        )
    identity = IDENTITY[model_type]
    if variant.mlp or not identity:
        return variant
    return replace(variant, mlp=True, mlp_skip=True, identity=identity)
