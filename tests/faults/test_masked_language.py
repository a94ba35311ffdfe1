"""A step of a masked language model at its full size, which never makes all logits at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOGITS = '''"""A step of 32 members and 30,000 words on samples of 128 tokens: all logits asked of 256 are 19 GB, of 32 2.3 GB."""
import resource, sys
import torch
from torch import nn
from rankfall.run.jobs.engine import peak_megabytes
from rankfall.nets.primitives import Linear, Lookup, Sizes
from rankfall.train.members import Hyperparameters, Members
from rankfall.train.objectives._base import Samples
from rankfall.train.objectives.masked_tokens import masked_tokens
from rankfall.train.optimizers.sgd import Sgd

K, B, T, WORDS, WIDTH = 32, int(sys.argv[3]), 128, 30_000, 2
torch.set_num_threads(1)


class Bag(nn.Module):
    """No attention: what is measured is the objective."""

    def __init__(self, sizes):
        super().__init__()
        self.table, self.head = Lookup(sizes, WORDS, "embedding"), Linear(sizes, WIDTH, WORDS, "head")
        for value in self.parameters():
            value.data.normal_(generator=torch.Generator().manual_seed(0))

    def features(self, inputs, drop):
        return self.table(inputs)


module = Bag(Sizes(K, 1, 1, WIDTH, 1, 1, T, WORDS, WORDS))
inputs = torch.randint(5, WORDS, (1, B, T), generator=torch.Generator().manual_seed(1)).expand(K, -1, -1)
before = peak_megabytes()
here = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = here + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
members = Members(module, range(K), Sgd(), [Hyperparameters(lr=0.1)] * K)
batch = Samples(inputs, inputs, range(K), ("train", 0), WORDS, 5)
graded = members.step(lambda *given: masked_tokens(*given, megabytes=int(sys.argv[2])), batch)
print(float(graded.loss.mean()), int(graded.asked[0]), peak_megabytes() - before)
'''


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "megabytes", "enough"), [(256, 128, True), (32, 2**20, False)])
def test_all_logits_at_once_are_never_made(samples: int, megabytes: int, enough: bool, tmp_path: Path) -> None:
    """A step of 32 members, 128 tokens and 30,000 words: 1.5 GB are enough with parts of 128 MB for 256 samples, and not for 32 with
    all at once: then the bound is what ends it.
    """
    (tmp_path / "logits.py").write_text(LOGITS)
    command = [sys.executable, str(tmp_path / "logits.py"), "1500", str(megabytes), str(samples)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if not enough:
        assert done.returncode and "allocate memory" in done.stderr, done.stderr
        return
    assert not done.returncode, done.stderr
    loss, asked, used = (float(number) for number in done.stdout.split())
    assert asked == samples * 19 and 9 < loss < 14
    assert used < 1500
