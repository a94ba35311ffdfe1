"""Colours of architectures, the same in every figure and on the page. A colour depends on the name only, unless another line of the figure
already has it.

Names of the shipped configurations have colours that colour-blind readers can distinguish (those of Okabe & Ito, and a few more); similar
architectures, such as `SAN` and `attention`, share one. The colour of any other name follows from a hash of it. Colours under `colours:` in
a configuration take precedence.
"""

import colorsys
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rankfall.report.looks import own_colour

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

BLUE, ORANGE, GREEN, PINK, RED, SKY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
BLACK, OLIVE, PURPLE, TEAL, LIME, MAROON = "#222222", "#A89200", "#7B4EA3", "#2A9D8F", "#8DB600", "#882255"
NAVY, BROWN, GREY = "#332288", "#8C564B", "#888888"
WHOLE, CHANCE = BLACK, GREY  # lines of every study that are no architectures: a whole network, and a guess
# In colour maps blue keeps and orange loses: the direction follows the better end of the quantity.
KEEPS, KEEPS_SOME, LOSES, LOSES_FASTER, LOSES_FASTEST, UNKNOWN = (
    "#3d85c0",
    "#b9dcf2",
    "#f0a202",
    "#c86414",
    "#7a2e00",
    "#eeeeee",
)
DIRECTION = "blue keeps, orange loses"
# Colours of lines other than architectures. Neighbours also differ in lightness.
COLOURS = (BLUE, ORANGE, GREEN, PINK, RED, SKY, BLACK, OLIVE)

FIXED = {
    **dict.fromkeys(("SAN", "attention", "softmax", "APE"), BLUE),
    **dict.fromkeys(("SAN+MLP", "attention+MLP", "l2"), ORANGE),
    **dict.fromkeys(("SAN+skip", "attention+skip", "relu2"), GREEN),
    **dict.fromkeys(("transformer", "noPE", "linear"), BLACK),
    **dict.fromkeys(("SAN+bare MLP", "attention+column-norm", "swish-l2"), PINK),
    **dict.fromkeys(("published", "attention+norm", "URPE"), RED),
    **dict.fromkeys(("published_sorting", "published_hull", "published_memorization"), RED),
    **dict.fromkeys(("causal", "attention+causal", "softmax+BOS", "softmax+CLS-SEP"), SKY),
    **dict.fromkeys(("bare", "RPE", "log-n"), PURPLE),
    **dict.fromkeys(("attention+shared-skip", "RPE+BOS", "softmax+T5"), TEAL),
    **dict.fromkeys(("attention+weak-skip", "l2-full"), LIME),
    **dict.fromkeys(("probed", "relu2-sum"), OLIVE),
    **dict.fromkeys(("gated", "relu2-n64"), MAROON),
    **dict.fromkeys(("softmax+ALiBi", "pre-norm"), NAVY),
    "cosine": BROWN,
    "KNA": GREY,
}
SERIES = ("MLM-", "GAU-")  # prefixes for the same way to weigh tokens in another setting, which has the same colour
OTHERS = (
    "#4C6FBF", "#BF8A3D", "#3E9B5A", "#B85C8E", "#C0504D", "#4BA3B5", "#6B6B6B", "#9A9A2E", "#8F6BB8", "#2F7F74", "#A6663A", "#5D8C2F",
)  # fmt: skip


def colour(architecture: str) -> str:
    """Return the colour of an architecture or a variant of a model as `#rrggbb`."""
    chosen = own_colour(architecture)
    if chosen is not None:
        return chosen
    name = plain(architecture)
    if name in FIXED:
        return FIXED[name]
    return OTHERS[hashlib.sha256(architecture.encode()).digest()[0] % len(OTHERS)]


def colours(architectures: Iterable[str]) -> dict[str, str]:
    """Return a palette, architecture -> colour. Architectures share a colour only if their names differ in the prefix of a series alone;
    otherwise the later one gets a spare colour."""
    palette = {name: colour(name) for name in architectures}
    spare = spares(set(palette.values()))
    # Plain name and default colour -> colour in this palette. Configured colours are kept even if they are equal.
    shared = {(plain(name), chosen): chosen for name, chosen in palette.items() if own_colour(name) is not None}
    for name, default in palette.items():
        key = (plain(name), default)
        if key not in shared:
            shared[key] = next(spare) if default in shared.values() else default
        palette[name] = shared[key]
    return palette


def plain(architecture: str) -> str:
    """Return the name of an architecture without the prefix of its series."""
    for prefix in SERIES:
        architecture = architecture.removeprefix(prefix)
    return architecture


def kept_map() -> "Colormap":
    """Return the colour map from values that lose everything to values that keep everything."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("kept", [LOSES, "#f9e6bd", KEEPS_SOME, KEEPS])


def spares(taken: set[str]) -> Iterator[str]:
    """Yield colours that are not taken, without end: `OTHERS`, then hues by the golden angle in three lightnesses, so that neighbours are
    far apart."""
    yield from (spare for spare in OTHERS if spare not in taken)
    for place in itertools.count():
        light = (0.4, 0.56, 0.27)[place % 3]
        red, green, blue = colorsys.hls_to_rgb(place * 137.508 / 360 % 1, light, 0.6)
        spare = f"#{round(255 * red):02X}{round(255 * green):02X}{round(255 * blue):02X}"
        if spare not in taken:
            yield spare
