"""Measure what residual known architectures keep by layer, by kind and depth: the reference bands of `rankfall check`.

    python -m benchmarks.bands                             # at birth: five minutes on a core
    rankfall run --config workflow/presets/bands.yaml      # trains small networks: ten minutes on a core
    python -m benchmarks.bands --trained results/bands     # after training

Both commands of this file write their part of src/rankfall/check/bands.json. At birth: types of the transformers library and
architectures of Rankfall at width 128, with weights drawn by their own rules, random tokens or pictures, and two seeds. A band is from the
smallest to the largest residual among architectures and seeds, at every layer. `rankfall bands add NAME --to src/rankfall/check/real.jsonl`
adds a real model.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from rankfall.api.layers import architecture, draw_states, network_of
from rankfall.check.bands import BIRTH, TRAINED, kind_of
from rankfall.check.library import build_model
from rankfall.errors import RankfallError
from rankfall.models.families.example import example_inputs
from rankfall.rank.residual import relative_residual
from rankfall.streams.cuts import states_of
from rankfall.streams.examine import examine

ROOT = Path(__file__).parents[1]
DEPTHS = (2, 4, 6, 12, 24)  # layers
SEEDS = 2  # of initial weights
WIDTH, HEADS, INNER, VOCABULARY, TOKENS = 128, 4, 512, 1000, 32  # small, for minutes on a core
SIZES = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": INNER, "vocab_size": VOCABULARY}
GROUPED = {**SIZES, "num_key_value_heads": 2}
PICTURES = {name: size for name, size in SIZES.items() if name != "vocab_size"} | {"image_size": 48, "patch_size": 8}
STATES = {"hidden_size": WIDTH, "vocab_size": VOCABULARY}
EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1}
# Every second layer has attention.
SPARSE = {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False}
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
    "jamba": ("num_hidden_layers", {**GROUPED, **EXPERTS, **SPARSE}),
}
# Rankfall's own: parts of an architecture as in a configuration
POST_NORM = {"residual": "add", "mlp": "gelu", "norm": "layer"}
PRE_NORM = {**POST_NORM, "norm_placement": "pre"}
OWN: dict[str, dict[str, Any]] = {
    "our post-norm": POST_NORM,
    "our pre-norm": PRE_NORM,
    "our post-norm, causal": {**POST_NORM, "mask": "causal"},
    "our pre-norm, causal": {**PRE_NORM, "mask": "causal"},
    "our linear attention": {**PRE_NORM, "attention": "linear"},
}
MIXER = "our MLP-mixer"
LEARNED = 0.9  # of the loss of the first epoch: a network with a larger final loss has learned nothing, and is left out
PARTS = ("attention", "mask", "norm_placement", "residual", "mlp", "norm")
Curve = tuple[str, str, list[float]]  # kind, name, residual by layer
Bands = dict[str, dict[str, dict[str, Any]]]  # kind -> depth -> low and high by layer, and the architectures


def build_mixer(depth: int, seed: int) -> Any:
    """Build layers of an MLP over tokens and an MLP over features, with a norm before each and PyTorch's initial values."""

    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
            self.tokens, self.features = (
                nn.Sequential(nn.Linear(size, inner), nn.GELU(), nn.Linear(inner, size))
                for size, inner in ((TOKENS, 2 * TOKENS), (WIDTH, INNER))
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.tokens(self.norms[0](x).mT).mT  # (B, T, D)
            return x + self.features(self.norms[1](x))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(*(Mixer() for _ in range(depth)))


def build_models(depth: int, seed: int, names: list[str] | None = None) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, model and inputs of all architectures, or of the named ones."""
    from transformers import CONFIG_MAPPING

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
        yield MIXER, build_mixer(depth, seed), draw_states(1, 4, TOKENS, WIDTH, seed)[0]


def measure_curves(depth: int, seed: int, names: list[str] | None = None) -> Iterator[Curve]:
    """Yield the residual by layer of all architectures at one depth and seed. Those that cannot be measured are reported."""
    for name, model, inputs in build_models(depth, seed, names):
        try:
            examined = examine(model, inputs)
        except RankfallError as error:
            print(f"{name} at {depth} layers: {error}", file=sys.stderr)
            continue
        flow = examined.flows[0]
        if flow.depth != depth:
            print(f"{name}: {flow.depth} layers where {depth} are expected", file=sys.stderr)
            continue
        yield kind_of(flow), name, [relative_residual(state).mean().item() for state in states_of(examined, flow)]


def bands_at_birth(depths: tuple[int, ...], seeds: int, names: list[str] | None = None) -> Bands:
    """Return the bands of untrained models."""
    return collect_bands(
        curve for depth in depths for seed in range(seeds) for curve in measure_curves(depth, seed, names)
    )


def collect_bands(curves: Iterable[Curve]) -> Bands:
    """Return the smallest and largest residual by layer for each kind and depth."""
    bands: Bands = {}
    for kind, name, curve in curves:
        entry = bands.setdefault(kind, {}).setdefault(str(len(curve) - 1), {"low": curve, "high": curve, "of": []})
        entry["low"], entry["high"] = list(map(min, entry["low"], curve)), list(map(max, entry["high"], curve))
        entry["of"] = sorted({*entry["of"], name})
    for entry in (entry for by_depth in bands.values() for entry in by_depth.values()):
        for side in ("low", "high"):
            entry[side] = [float(f"{value:.4g}") for value in entry[side]]
    return dict(sorted(bands.items()))


def curves_of_run(results: Path) -> tuple[list[Curve], dict[str, Any]]:
    """Return the curves, and a description of the networks."""
    rows = pd.read_parquet(results / "tables" / "residuals.parquet")
    rows = rows[(rows.place == "state") & (rows.quantity == "residual") & (rows.centre == "mean")]
    rows = rows[(rows.matrix_norm == "composite") & (rows.status == "done") & (rows.epochs > 0)]
    learned = rows[rows.key.isin(cells_that_learned(pd.read_parquet(results / "tables" / "training.parquet")))]
    origin = {
        "networks": "small networks of our own, each trained on one task",
        "widths": sorted({int(width) for width in learned.width}),
        "tasks": sorted(set(learned.task)),
        "cells": int(learned.key.nunique()),
        "left_out": int(rows.key.nunique() - learned.key.nunique()),
    }
    return list(curves_of_cells(learned)), origin


def cells_that_learned(training: pd.DataFrame) -> set[str]:
    """Return the keys of cells whose loss on held-out data fell."""
    losses = training[(training.split == "test") & (training.metric == "loss")].sort_values("epoch")
    cells = losses.groupby("key")["value"]
    return {str(key) for key, values in cells if values.iloc[-1] <= LEARNED * values.iloc[0]}


def curves_of_cells(rows: pd.DataFrame) -> Iterator[Curve]:
    """Yield a curve for each cell, named after its architecture and task."""
    kinds: dict[tuple[Any, ...], str] = {}
    for _, cell in rows.groupby("key"):
        cell = cell.sort_values("layer")
        first = cell.iloc[0]
        parts = tuple(without_options(first[name]) for name in PARTS)
        if parts not in kinds:
            heads = 1 if pd.isna(first.heads) else int(first.heads)
            kinds[parts] = examine_kind(dict(zip(PARTS, parts)), int(first.width), heads)
        mask = " causal" if first["mask"] == "causal" else ""
        name = f"our {first.norm_placement}-norm{mask} {without_options(first.attention)}, {first.task}"
        yield kinds[parts], name, [float(value) for value in cell["value"]]


def without_options(part: Any) -> Any:
    """Return the name of a component: `layer` for `layer(eps=1e-12)`."""
    return part.partition("(")[0] if isinstance(part, str) else part


def examine_kind(parts: dict[str, Any], width: int, heads: int) -> str:
    """Return the kind that a check finds for a network of these parts."""
    components = {name: value for name, value in parts.items() if isinstance(value, str)}
    network = network_of(architecture(components, depth=2, width=width, heads=heads), 1, 16, 0)
    return kind_of(examine(network, draw_states(1, 2, 16, width, 0)).flows[0])


def write_bands(out: Path, when: str, origin: dict[str, Any], bands: Bands) -> None:
    """Replace one of the two parts of the table. Lists of numbers stand on one line."""
    table = json.loads(out.read_text()) if out.exists() else {"made": {}, "bands": {}}
    table["made"][when], table["bands"][when] = origin, bands
    text = re.sub(r"\[[^\[\]{}\"]*\]", lambda numbers: " ".join(numbers[0].split()), json.dumps(table, indent=1))
    out.write_text(text + "\n")
    print(f"wrote {out}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bands", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trained", type=Path, metavar="RESULTS", help="of a run of workflow/presets/bands.yaml")
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "rankfall" / "check" / "bands.json")
    args = parser.parse_args()
    import transformers

    transformers.logging.set_verbosity_error()
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    if args.trained is not None:
        curves, origin = curves_of_run(args.trained)
        write_bands(args.out, TRAINED, {**versions, **origin}, collect_bands(curves))
    else:
        sizes = {"width": WIDTH, "tokens": TOKENS, "seeds": SEEDS}
        write_bands(args.out, BIRTH, {**versions, **sizes}, bands_at_birth(DEPTHS, SEEDS))


if __name__ == "__main__":
    main()
