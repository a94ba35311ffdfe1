"""Equal tokens, places as answers, at every length; training cuts them to lengths that all members share."""

import torch
from torch import nn

from rankfall.tasks.probe import probe
from rankfall.train.objectives._base import Samples
from rankfall.train.objectives.prefixes import prefixes


def test_tokens_are_equal_and_answers_are_places() -> None:
    data = probe(None, train=3, length=5, lengths=[4, 5, 7])  # type: ignore[arg-type]
    assert list(data.splits) == ["train", "test", "length 4", "length 7"]
    assert all(not bool(split.inputs.any()) for split in data.splits.values())
    assert data.train.targets.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert data.splits["length 4"].targets.tolist() == [[0, 1, 2, 3]]
    assert data.splits["length 7"].targets.tolist() == [[0, 1, 2, 3, 4, -1, -1]]  # places that were never learned
    assert data.chance == 1 / 5 and data.size_out == 5


class Lengths(nn.Module):
    """Remembers the lengths of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.asked.append(inputs.shape[2])
        return torch.ones(*inputs.shape, 9)


def test_training_meets_all_lengths_and_evaluation_is_whole() -> None:
    inputs, module = torch.zeros(2, 1, 9, dtype=torch.int64), Lengths()
    targets = torch.arange(9).expand(2, 1, 9)
    for step in range(200):
        graded = prefixes(module, Samples(inputs, targets, [0, 1], ("train", step), learned=True), shortest=4)
        assert graded.asked.tolist() == [module.asked[-1]] * 2
    assert set(module.asked) == {4, 5, 6, 7, 8, 9}
    prefixes(module, Samples(inputs, targets, [0, 1], ("train", 0)), shortest=4)  # what was trained on, evaluated
    assert module.asked[-1] == 9
    again = Lengths()
    for step in range(200):
        prefixes(again, Samples(inputs[:1], targets[:1], [5], ("train", step), learned=True), shortest=4)
    assert again.asked == module.asked[:-1]  # whoever is in the stack
