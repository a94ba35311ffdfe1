"""The variants of a model that are measured, by the parts that stay in every block."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """The parts that stay in every block. `identity`: linear maps (by the last part of their names) that return their
    input, as in published variants.
    """

    name: str
    attention_skip: bool = True
    mlp: bool = True
    mlp_skip: bool = True
    identity: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return self.attention_skip and self.mlp and self.mlp_skip and not self.identity


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("SAN", attention_skip=False, mlp=False),
        Variant("SAN+MLP", attention_skip=False),
        Variant("SAN+skip", mlp=False),
        Variant("transformer"),
        Variant("SAN+bare MLP", attention_skip=False, mlp_skip=False),
    )
}
