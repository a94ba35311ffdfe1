"""Which of PyTorch's operations a plain step spends its time in.

    python -m benchmarks.operations mlm

prints their shares for one of the networks that have a clean module, 16 members on one thread with dropout 0.1.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import networks

GROUPS = {
    "products of matrices": ("bmm", "baddbmm", "mm", "addmm"),
    "copies": ("copy_", "cat", "gather", "scatter", "index", "index_put_", "_index_put_impl_"),
    "softmax, of weights and of logits": ("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "argmax"),
    "activations and norms": ("gelu", "gelu_backward", "native_layer_norm", "native_layer_norm_backward"),
    "sums and products of numbers": ("mul", "mul_", "add", "add_", "sub", "div", "div_", "sum", "addcmul", "addcmul_", "addcdiv_"),
}  # fmt: skip
REST = "all else"


def shares(seconds: Mapping[str, float]) -> dict[str, float]:
    """Of each group, from the own time of each operation by its name in the profile, such as `aten::bmm`."""
    group_of = {f"aten::{name}": group for group, names in GROUPS.items() for name in names}
    found: defaultdict[str, float] = defaultdict(float)
    for name, spent in seconds.items():
        found[group_of.get(name, REST)] += spent
    total = sum(found.values())
    return {group: found[group] / total for group in (*GROUPS, REST)}


def profiled(short: str, members: int = 16, dropout: float = 0.1, steps: int = 8) -> dict[str, float]:
    torch.set_num_threads(1)
    step = networks.plain_step(networks.HEADLINES[short], members, dropout)
    step()  # the first allocates
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(steps):
            step()
    return shares({event.key: event.self_cpu_time_total for event in recorded.key_averages()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description="shares of a plain step")
    parser.add_argument("network", choices=networks.HEADLINES)
    for group, share in profiled(parser.parse_args().network).items():
        print(f"{share:6.1%}  {group}")


if __name__ == "__main__":
    main()
