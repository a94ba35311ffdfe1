"""What residual known architectures keep by layer, by kind and depth: the reference bands that `rankfall check` ships with.

    python -m benchmarks.bands                             # at birth: five minutes on a core
    rankfall run --config workflow/presets/bands.yaml      # trains small networks: ten minutes on a core
    python -m benchmarks.bands --trained results/bands     # after training

`rankfall bands add NAME --to src/rankfall/check/real.jsonl` adds a real model.

Both write their part of src/rankfall/check/bands.json. At birth: types of the transformers library and architectures of our own at width
128, with weights drawn by their own rules, random tokens or pictures, and two seeds. A band is from the smallest to the largest residual
among architectures and seeds, at every layer. What training makes of networks is in `benchmarks/trained_bands.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
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
    "our linear attention": {
        "residual": "add",
        "mlp": "gelu",
        "norm": "layer",
        "norm_placement": "pre",
        "attention": "linear",
    },
}

MIXER = "our MLP-mixer"


def mixer(depth: int, seed: int) -> Any:
    """Layers that mix tokens by an MLP over places and features by another, with a norm before each and PyTorch's own initial values."""
    import torch
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
            self.places, self.features = (
                nn.Sequential(nn.Linear(size, inner), nn.GELU(), nn.Linear(inner, size))
                for size, inner in ((TOKENS, 2 * TOKENS), (WIDTH, INNER))
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.places(self.norms[0](x).mT).mT
            return x + self.features(self.norms[1](x))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(*(Mixer() for _ in range(depth)))


def models(depth: int, seed: int, names: list[str] | None = None) -> Iterator[tuple[str, Any, Any]]:
    """(name, model, inputs) of this depth."""
    from transformers import CONFIG_MAPPING

    from rankfall.api.layers import architecture, draw_states, network_of
    from rankfall.check.library import build_model
    from rankfall.models.families.example import example_inputs

    for kind, (layers, sizes) in TYPES.items():
        if names is None or kind in names:
            config = CONFIG_MAPPING[kind](**sizes, **{layers: depth})
            model = build_model(kind, config, seed)
            yield kind, model, example_inputs(model, config, tokens=TOKENS, seed=seed)
    for name, parts in OWN.items():
        if names is None or name in names:
            network = network_of(architecture(parts, depth=depth, width=WIDTH, heads=HEADS), 1, TOKENS, seed)
            yield name, network, draw_states(1, 4, TOKENS, WIDTH, seed)
    if names is None or MIXER in names:
        yield MIXER, mixer(depth, seed), draw_states(1, 4, TOKENS, WIDTH, seed)[0]


def measured(depth: int, seed: int, names: list[str] | None = None) -> Iterator[tuple[str, str, list[float]]]:
    """(kind, name, residual by layer)."""
    from rankfall.check.bands import kind_of
    from rankfall.errors import RankfallError
    from rankfall.rank.residual import relative_residual
    from rankfall.streams.cuts import states_of
    from rankfall.streams.examine import examine

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
        yield kind_of(flow), name, [relative_residual(state).mean().item() for state in states_of(found, flow)]


Bands = dict[str, dict[str, dict[str, Any]]]


def bands(depths: tuple[int, ...], seeds: int, names: list[str] | None = None) -> Bands:
    """kind -> depth -> low and high by layer, and the architectures."""
    return gathered(one for depth in depths for seed in range(seeds) for one in measured(depth, seed, names))


def gathered(curves: Iterable[tuple[str, str, list[float]]]) -> Bands:
    """The smallest and largest of all (kind, name, residual by layer) of a kind and depth."""
    found: Bands = {}
    for kind, name, curve in curves:
        entry = found.setdefault(kind, {}).setdefault(str(len(curve) - 1), {"low": curve, "high": curve, "of": []})
        entry["low"], entry["high"] = list(map(min, entry["low"], curve)), list(map(max, entry["high"], curve))
        entry["of"] = sorted({*entry["of"], name})
    for by_depth in found.values():
        for entry in by_depth.values():
            for side in ("low", "high"):
                entry[side] = [float(f"{value:.4g}") for value in entry[side]]
    return dict(sorted(found.items()))


def written(out: Path, when: str, made: dict[str, Any], found: Bands) -> None:
    """Put one of the two parts into the table; lists of numbers stand on one line."""
    whole = json.loads(out.read_text()) if out.exists() else {"made": {}, "bands": {}}
    whole["made"][when], whole["bands"][when] = made, found
    text = json.dumps(whole, indent=1)
    text = re.sub(r"\[[^\[\]{}\"]*\]", lambda numbers: " ".join(numbers[0].split()), text)
    out.write_text(text + "\n")
    print(f"wrote {out}")


def main() -> None:
    sys.path[:0] = [str(ROOT / "src")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bands", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trained", type=Path, metavar="RESULTS", help="of a run of workflow/presets/bands.yaml")
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "rankfall" / "check" / "bands.json")
    args = parser.parse_args()
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    from rankfall.check.bands import BIRTH, TRAINED

    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    if args.trained is not None:
        from benchmarks.trained_bands import trained

        found, made = trained(args.trained)
        written(args.out, TRAINED, {**versions, **made}, gathered(found))
        return
    made = {
        **versions,
        "width": WIDTH,
        "tokens": TOKENS,
        "seeds": SEEDS,
    }
    written(args.out, BIRTH, made, bands(DEPTHS, SEEDS))


if __name__ == "__main__":
    main()
