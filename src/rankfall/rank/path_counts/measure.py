"""Number of paths of each length: in a network of L layers of H heads with skip connections, C(L, k) H^k of (1 + H)^L.

The length of a random path is therefore binomial, Bin(L, H / (H + 1)), and nearly all paths are long. Counts are computed in logarithms,
since (96, 96) has 1e190 paths. The published curve (Dong et al. 2021, figure of path lengths, read off the vector graphics) is included
for the models that it shows.
"""

import csv
import math
from importlib.resources import files
from typing import Any

from rankfall.measure.context import Context
from rankfall.models.source import PACKAGES

NEEDS = "nothing"
DATA = ["rank/path_counts/path_length_distribution.csv"]
READS = PACKAGES


def path_counts(
    context: Context,
    *,
    models: list[str] = [
        "DistilBert: 6 x 12",
        "DeiT-T: 12 x 3",
        "MobileBert: 12 x 4",
        "Bert-Base/ViT-B: 12 x 12",
        "Bert-Large/ViT-L: 24 x 16",
        "T5-3B: 24 x 32",
        "T5-11B: 24 x 128",
        "ViT-H: 32 x 16",
        "GPT-3: 96 x 96",
    ],
) -> list[dict[str, Any]]:
    """Count the paths of each model.

    `models`: "name: layers x heads", or the name of a Hugging Face model, whose sizes are read from its config.
    """
    known = published()
    rows = []
    for text in models:
        name, depth, heads = model(text)
        for length in range(depth + 1):
            curve = known.get((name, depth, heads, length))
            paths = math.lgamma(depth + 1) - math.lgamma(length + 1) - math.lgamma(depth - length + 1)  # log C(L, k)
            paths += length * math.log(heads)
            share = math.exp(paths - depth * math.log1p(heads))
            about = {
                "model": name,
                "depth": depth,
                "heads": heads,
                "length": length,
                "log10_paths": paths / math.log(10),
            }
            deviation = None if curve is None else share - curve
            rows.append(about | {"proportion": share, "published": curve, "deviation": deviation})
    return rows


def model(text: str) -> tuple[str, int, int]:
    """Parse `name: layers x heads`. For a name alone, return the sizes in the model's config."""
    if ":" not in text and " " not in text.strip():
        from rankfall.models.load import read_config
        from rankfall.models.source import ModelSource

        config = read_config(ModelSource(text.strip()))
        return text.strip(), config.num_hidden_layers, config.num_attention_heads
    name, _, sizes = text.rpartition(":")
    depth, _, heads = sizes.partition("x")
    try:
        return name.strip(), int(depth), int(heads)
    except ValueError:
        raise ValueError(f"{text!r} is not of the form 'name: layers x heads'") from None


def published() -> dict[tuple[str, int, int, int], float]:
    """Return the proportions in the published figure, by model, layers, heads and length."""
    text = (files("rankfall") / DATA[0]).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(r["arch"], int(r["L"]), int(r["H"]), int(r["k"])): float(r["proportion_from_pdf"]) for r in rows}
