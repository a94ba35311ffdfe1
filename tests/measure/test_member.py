"""Guards that a network which is taken out of its stack is the one that it was there."""

from typing import Any

import pytest
import torch
from helpers import cells

from rankfall import components
from rankfall.measure.member import data_of, each_network
from rankfall.nets.network import Shape, build
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data

POSITIONS = [{"position": name} for name in components.names("position")]
OTHERS: list[dict[str, Any]] = [{"sentinels": "cls_sep"}, {"normaliser": "urpe"}, {"norm": "column"}, {"norm": "rms"}]


@pytest.mark.parametrize("architecture", [*POSITIONS, *OTHERS], ids=lambda one: "-".join(map(str, one.values())))
def test_a_network_alone_is_the_one_in_the_stack(architecture: dict[str, Any]) -> None:
    (cell,) = cells(architecture=architecture)
    network = build(cell.architecture, Shape("tokens", "classes", length=5, size_in=7, size_out=7), 3, torch.float64)
    network.initialise([0, 1, 2])
    inputs = torch.randint(7, (3, 4, 5), generator=torch.Generator().manual_seed(1))
    data = Data({"test": Split(inputs, inputs + 0)}, torch.arange(3.0))
    with torch.no_grad():
        together = network(inputs)
        for member, alone in enumerate(each_network(network)):
            own = data_of(data, member)
            assert own.chance.tolist() == [member]
            assert torch.equal(own.test.targets, inputs[member : member + 1])
            assert alone(own.test.inputs).allclose(together[member : member + 1], rtol=1e-12, atol=1e-12)
    assert member == 2
