"""Guards the count of parameters: by the sizes of a network, written out."""

from helpers import cells

from rankfall.measure.context import Context
from rankfall.nets.network import Shape, build
from rankfall.use.parameters.measure import parameters


def test_counts_are_those_of_the_sizes() -> None:
    width, hidden, depth, length, symbols = 8, 12, 3, 5, 7
    shape = {"depth": depth, "width": width, "mlp": "gelu", "mlp_width": hidden, "position": "learned"}
    cell = cells(architecture=shape)[0]
    network = build(cell.architecture, Shape("tokens", "classes", length, symbols, symbols), 2)
    found = {row["part"]: row["count"] for row in parameters(Context(network, cells=[cell]))}
    norm = 2 * width
    wanted = {
        "attention": depth * 4 * (width + 1) * width,
        "mlp": depth * ((width + 1) * hidden + (hidden + 1) * width),
        "others": depth * 2 * norm,
        "outside": symbols * width + length * width + norm + (width + 1) * symbols,
    }
    assert found == wanted | {"all": sum(wanted.values())}
