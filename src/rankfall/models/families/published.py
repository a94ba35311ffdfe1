"""The published variants, per model type, where they differ from a clean cut.

The published code removes the MLP by replacing modules with the identity. In BERT and XLNet that removes the MLP with its skip
and its norm, as the clean definition does. ALBERT's layer still computes norm(gelu(h) + h) around the two identities, so a gelu
without weights, a skip and a norm stay in the variants SAN and SAN+skip. SAN+MLP keeps the MLP's skip in all three.
"""

from __future__ import annotations

from dataclasses import replace

from rankfall.errors import RankfallError
from rankfall.streams.variants import Variant

# model type -> modules that the published code replaces by the identity while the rest of the MLP's code runs on
IDENTITY: dict[str, tuple[str, ...]] = {"bert": (), "xlnet": (), "albert": ("ffn", "ffn_output")}


def published(variant: Variant, model_type: str) -> Variant:
    """Return the variant as published for this model type."""
    if model_type not in IDENTITY:
        raise RankfallError(
            f"definition: published exists for {', '.join(sorted(IDENTITY))}; for {model_type!r} use definition: clean"
        )
    if variant.mlp and not variant.mlp_skip:
        raise RankfallError(f"definition: published has no variant {variant.name!r}; use definition: clean")
    identity = IDENTITY[model_type]
    if variant.mlp or not identity:
        return variant
    return replace(variant, mlp=True, mlp_skip=True, identity=identity)
