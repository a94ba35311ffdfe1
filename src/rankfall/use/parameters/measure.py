"""How many numbers a network learns: in attention, in MLPs, in the rest of its blocks, and outside (embedding, head, shared positions)."""

from collections import Counter

from rankfall.measure.context import Context, Rows

TABLE = "parameters"
PARTS_OF_NETWORKS = ("all", "attention", "mlp", "others", "outside")


def parameters(context: Context) -> Rows:
    """The same for all members of a stack."""
    counts: Counter[str] = Counter()
    for name, value in context.network.named_parameters():  # each once, by its first name
        counts[part_of(name)] += value[0].numel()
    counts["all"] = sum(counts.values())
    return [
        {"member": member, "part": part, "count": counts[part]}
        for member in range(len(context.cells))
        for part in PARTS_OF_NETWORKS
    ]


def part_of(name: str) -> str:
    """By the name of a parameter: blocks.3.attention.query.weight."""
    words = name.split(".")
    if words[0] != "blocks":
        return "outside"
    return words[2] if words[2] in ("attention", "mlp") else "others"
