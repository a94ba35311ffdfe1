"""Number of learned parameters: in attention, in MLPs, in the rest of the blocks, and outside them (embedding, head, shared positions)."""

from collections import Counter

from rankfall.measure.context import Context, Rows

PARTS_OF_NETWORKS = ("all", "attention", "mlp", "others", "outside")


def parameters(context: Context) -> Rows:
    """Count the parameters of one network."""
    counts: Counter[str] = Counter()
    for name, value in context.network.named_parameters():  # a shared parameter appears once, under its first name
        counts[part_of(name)] += value[0].numel()
    counts["all"] = sum(counts.values())
    return [{"part": part, "count": counts[part]} for part in PARTS_OF_NETWORKS]


def part_of(name: str) -> str:
    """Return the part of the network that a parameter belongs to, by its name, such as `blocks.3.attention.query.weight`."""
    words = name.split(".")
    if words[0] != "blocks":
        return "outside"
    return words[2] if words[2] in ("attention", "mlp") else "others"
