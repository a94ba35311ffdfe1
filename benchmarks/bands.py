"""What residual known architectures keep at birth, by kind and depth: the reference bands that `rankfall check` ships with.

    python -m benchmarks.bands     # writes src/rankfall/check/bands.json; five minutes on a core

Types of the transformers library and architectures of our own at width 128, with weights drawn by their own rules, random tokens or
pictures, and two seeds. A band is from the smallest to the largest residual of the last layer among architectures and seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEPTHS = (2, 4, 6, 12, 24)
SEEDS = 2
WIDTH, HEADS, INNER, VOCABULARY, TOKENS = 128, 4, 512, 1000, 32
SIZES = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": INNER, "vocab_size": VOCABULARY}
GROUPED = {**SIZES, "num_key_value_heads": 2}
PICTURES = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "image_size": 48,
    "patch_size": 8,
}
STATES = {"hidden_size": WIDTH, "vocab_size": VOCABULARY}
# type -> (name of its number of layers, its sizes)
TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("num_hidden_layers", SIZES),
    "roberta": ("num_hidden_layers", SIZES),
    "electra": ("num_hidden_layers", {**SIZES, "embedding_size": WIDTH}),
    "albert": ("num_hidden_layers", {**SIZES, "embedding_size": 64}),
    "distilbert": ("n_layers", {"dim": WIDTH, "n_heads": HEADS, "hidden_dim": INNER, "vocab_size": VOCABULARY}),
    "modernbert": ("num_hidden_layers", {**SIZES, "pad_token_id": 0}),
    "vit": ("num_hidden_layers", PICTURES),
    "deit": ("num_hidden_layers", PICTURES),
    "dinov2": ("num_hidden_layers", PICTURES),
    "siglip_vision_model": ("num_hidden_layers", PICTURES),
    "gpt2": ("n_layer", {"n_embd": WIDTH, "n_head": HEADS, "vocab_size": VOCABULARY}),
    "gpt_neox": ("num_hidden_layers", SIZES),
    "gptj": ("n_layer", {"n_embd": WIDTH, "n_head": HEADS, "vocab_size": VOCABULARY, "rotary_dim": 16}),
    "opt": ("num_hidden_layers", {**SIZES, "ffn_dim": INNER, "word_embed_proj_dim": WIDTH}),
    "bloom": ("n_layer", {"hidden_size": WIDTH, "n_head": HEADS, "vocab_size": VOCABULARY}),
    "llama": ("num_hidden_layers", GROUPED),
    "qwen2": ("num_hidden_layers", GROUPED),
    "qwen3": ("num_hidden_layers", {**GROUPED, "head_dim": 32}),
    "gemma2": ("num_hidden_layers", {**GROUPED, "head_dim": 32}),
    "olmo2": ("num_hidden_layers", GROUPED),
    "mixtral": ("num_hidden_layers", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mamba": ("num_hidden_layers", STATES),
    "falcon_mamba": ("num_hidden_layers", STATES),
    "rwkv": ("num_hidden_layers", {**STATES, "attention_hidden_size": WIDTH, "intermediate_size": INNER}),
    "fnet": ("num_hidden_layers", SIZES),
    "recurrent_gemma": ("num_hidden_layers", {**SIZES, "num_key_value_heads": 1, "lru_width": WIDTH}),
    "jamba": (
        "num_hidden_layers",
        {**GROUPED, "num_experts": 2, "num_experts_per_tok": 1, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    ),
}  # fmt: skip
# of our own: parts of an architecture, as a configuration has them
OWN: dict[str, dict[str, Any]] = {
    "our post-norm": {"residual": "add", "mlp": "gelu", "norm": "layer"},
    "our pre-norm": {"residual": "add", "mlp": "gelu", "norm": "layer", "norm_placement": "pre"},
    "our post-norm, causal": {"residual": "add", "mlp": "gelu", "norm": "layer", "mask": "causal"},
    "our pre-norm, causal": {
        "residual": "add",
        "mlp": "gelu",
        "norm": "layer",
        "norm_placement": "pre",
        "mask": "causal",
    },
}


def models(depth: int, seed: int, names: list[str] | None = None) -> Iterator[tuple[str, Any, Any]]:
    """(name, model, inputs) of this depth."""
    from transformers import CONFIG_MAPPING

    from rankfall.api.layers import architecture, drawn_states, network_of
    from rankfall.check.library import built
    from rankfall.models.families.example import example_inputs

    for kind, (layers, sizes) in TYPES.items():
        if names is None or kind in names:
            config = CONFIG_MAPPING[kind](**sizes, **{layers: depth})
            model = built(kind, config, seed)
            yield kind, model, example_inputs(model, config, tokens=TOKENS, seed=seed)
    for name, parts in OWN.items():
        if names is None or name in names:
            network = network_of(architecture(parts, depth=depth, width=WIDTH, heads=HEADS), 1, TOKENS, seed)
            yield name, network, drawn_states(1, 4, TOKENS, WIDTH, seed)


def measured(depth: int, seed: int, names: list[str] | None = None) -> Iterator[tuple[str, str, float]]:
    """(kind, name, residual of the last layer)."""
    from rankfall.check.bands import kind_of
    from rankfall.errors import RankfallError
    from rankfall.models.modules.cuts import states_of
    from rankfall.models.modules.examine import examine
    from rankfall.rank.residual import relative_residual

    for name, model, inputs in models(depth, seed, names):
        try:
            found = examine(model, inputs)
        except RankfallError as error:
            print(f"{name} at {depth} layers: {error}", file=sys.stderr)
            continue
        flow = found.flows[0]
        if flow.depth != depth:
            print(f"{name}: {flow.depth} layers where there are {depth}", file=sys.stderr)
            continue
        yield kind_of(flow), name, relative_residual(states_of(found, flow)[-1]).mean().item()


def bands(depths: tuple[int, ...], seeds: int, names: list[str] | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """kind -> depth -> low, high, and the architectures."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for depth in depths:
        for seed in range(seeds):
            for kind, name, value in measured(depth, seed, names):
                entry = found.setdefault(kind, {}).setdefault(str(depth), {"low": value, "high": value, "of": []})
                entry["low"], entry["high"] = min(entry["low"], value), max(entry["high"], value)
                entry["of"] = sorted({*entry["of"], name})
    for by_depth in found.values():
        for entry in by_depth.values():
            entry["low"], entry["high"] = (float(f"{entry[side]:.4g}") for side in ("low", "high"))
    return dict(sorted(found.items()))


def main() -> None:
    sys.path[:0] = [str(ROOT / "src")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bands", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "rankfall" / "check" / "bands.json")
    args = parser.parse_args()
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    made = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "width": WIDTH,
        "tokens": TOKENS,
        "seeds": SEEDS,
    }
    args.out.write_text(json.dumps({"made": made, "bands": bands(DEPTHS, SEEDS)}, indent=1) + "\n")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
