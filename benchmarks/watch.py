"""Measure what watching a training costs: a decoder of 12 layers, watched and not, step by step in one process on one thread.

Times are processor times, and the least of several turns, since the machine may be shared.
"""

import copy
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.benchmarks.record import Results

EVERY, TURNS = 50, 8  # steps from one log to the next; turns of which the least time counts
SIZES = {"width 128, 64 tokens": (128, 64, 12), "width 256, 128 tokens": (256, 128, 8)}  # width, tokens, batch
DEPTH, HEADS, WORDS = 12, 4, 65  # layers, heads, and size of the vocabulary


class DecoderBlock(nn.Module):
    """Causal attention and an MLP, each after a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, d)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Decoder(nn.Module):
    """A language model that returns its loss."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.blocks = nn.ModuleList(DecoderBlock(width) for _ in range(depth))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(x).flatten(0, 1), tokens.flatten())


class Training:
    """A copy of a model on a device, with its batch and optimiser. `narrow`: under autocast to bfloat16."""

    def __init__(
        self, model: nn.Module, words: Tensor, device: str | torch.device = "cpu", narrow: bool = False
    ) -> None:
        self.model, self.words, self.narrow = copy.deepcopy(model).to(device), words.to(device), narrow
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def step(self) -> float:
        """Take a step, and return the processor time of this thread in seconds."""
        began = time.thread_time()
        self.optimizer.zero_grad()
        with torch.autocast(self.words.device.type, torch.bfloat16, enabled=self.narrow):
            loss = self.model(self.words)
        loss.backward()
        self.optimizer.step()
        return time.thread_time() - began


def measure(results: Results) -> None:
    torch.set_num_threads(1)
    for name, sizes in {"width 16, 8 tokens": (16, 8, 2)}.items() if results.tiny else SIZES.items():
        measure_size(results, name, *sizes)


def measure_size(results: Results, name: str, width: int, tokens: int, batch: int) -> None:
    """Time plain and watched steps of a decoder of one size."""
    import rankfall

    torch.manual_seed(0)
    model, words = Decoder(width, 2 if results.tiny else DEPTH), torch.randint(0, WORDS, (batch, tokens))
    plain, watched = Training(model, words), Training(model, words)
    times: dict[str, list[float]] = {"plain": [], "not logged": [], "logged": []}
    plain.step()
    with tempfile.TemporaryDirectory() as folder, rankfall.watch(watched.model, 2, Path(folder) / "run.parquet"):
        watched.step()
        process, thread = time.process_time(), time.thread_time()
        for _ in range(1 if results.tiny else TURNS):
            for kind in ("logged", "not logged"):
                times["plain"].append(plain.step())
                times[kind].append(watched.step())
    # The other thread computes the eigenvalues of one log in each turn.
    later = (time.process_time() - process - (time.thread_time() - thread)) / len(times["logged"])
    least = {kind: min(seconds) for kind, seconds in times.items()}
    labels = {"network": name, "axis": "every", "size": EVERY}
    results.add("step", least["plain"], "s", variant="plain", **labels)
    for kind in ("not logged", "logged"):
        ratio = {"ratio": least[kind] / least["plain"], "against": "a plain step"}
        results.add(f"{kind} step", least[kind], "s", variant="watched", **labels, **ratio)
    results.add("thread of a log", later, "s", variant="watched", **labels)
    share = (least["logged"] - least["plain"] + later) / (EVERY * least["plain"])
    variant = f"every {EVERY}th step"
    results.add("share of a run", share, "1", variant=variant, **labels, ratio=1 + share, against="plain")
