"""Where a member's step spends its time: the machine's program, instruction by instruction.

    python -m benchmarks.instructions [NETWORK ...]

Of the networks of `python -m benchmarks.machine`. `python -m thousandfold profile build.py:build` does the same for any module.
"""

import sys

import torch

from rankfall.run.jobs.processor import processor
from thousandfold.profile import peak, profile, report


def main() -> None:
    from benchmarks.machine import NETWORKS, OWN, stack_of

    sys.path.insert(0, str(OWN))
    torch.set_num_threads(1)
    print(processor())
    for name in sys.argv[1:] or list(NETWORKS):
        members, _, batch = stack_of(NETWORKS[name], "machine", 1)
        found = profile(members.engine.engine, members, members.engine.work(batch))
        print("\n" + "\n".join(report(name, *found, peak(members.weights.dtype))))


if __name__ == "__main__":
    main()
