"""No MLP: the block is attention alone."""

IGNORES = ("mlp_residual", "mlp_width")


def none(sizes: object) -> None:
    return None
