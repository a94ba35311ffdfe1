"""Sizes of well-known checkpoints, so that their initialisation needs no network: hub name -> (model type, config values).

Only values that differ from the library's defaults for that type are listed. For other checkpoints, pass a folder with a `config.json`.
"""

from __future__ import annotations

from typing import Any

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
