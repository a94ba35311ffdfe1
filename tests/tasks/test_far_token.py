"""Check the task of one far token: what is asked, and that it cannot be guessed from the rest."""

import numpy as np
import torch

from rankfall.tasks.far_token import far_token


def test_the_last_token_is_asked_for_the_first() -> None:
    made = far_token(np.random.default_rng(0), train=300, test=100, length=6, letters=4, fillers=3)
    for split, count in ((made.train, 300), (made.test, 100)):
        assert split.inputs.shape == split.targets.shape == (count, 6)
        assert torch.equal(split.targets[:, -1], split.inputs[:, 0])
        assert (split.targets[:, :-1] == -1).all()
        assert split.inputs[:, 0].max() == 3 and split.inputs[:, 1:].min() == 4 and split.inputs[:, 1:].max() == 6
    assert (made.size_in, made.size_out, made.length) == (7, 4, 6)
    most = torch.bincount(made.train.inputs[:, 0], minlength=4).argmax()
    assert made.chance == float((made.test.inputs[:, 0] == most).double().mean())
