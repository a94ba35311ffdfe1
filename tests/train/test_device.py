"""Guards where a job computes: a training job without the GPU it was promised stops at once, instead of failing cell by cell."""

import pytest
import torch

from rankfall.errors import RankfallError
from rankfall.train.device import prepare


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_training_needs_the_gpu_that_is_asked_for() -> None:
    with pytest.raises(RankfallError, match=r"compute\.device: 'cuda'.*no GPU here.*gres: gpu:1"):
        prepare("cuda", 1)


def test_measuring_does_without() -> None:
    assert prepare("cuda", 1, insist=False) == torch.device("cpu")


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_others_take_what_there_is(device: str) -> None:
    assert prepare(device, 1) == torch.device("cpu")
