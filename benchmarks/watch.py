"""What watching a training costs: a decoder of 12 layers, watched and not, turn by turn in one process."""

import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.record import Results

EVERY = 50
SIZES = {"width 128, 64 tokens": (128, 64, 12), "width 256, 128 tokens": (256, 128, 8)}  # width, tokens, batch
TURNS = 3
DEPTH, HEADS, WORDS = 12, 4, 65


class DecoderBlock(nn.Module):
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
    """A model, its batch and its optimiser."""

    def __init__(self, width: int, tokens: int, batch: int, depth: int) -> None:
        torch.manual_seed(0)
        self.model = Decoder(width, depth)
        self.batch = torch.randint(0, WORDS, (batch, tokens))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def seconds(self, steps: int) -> float:
        """Of a processor, for so many steps."""
        began = time.process_time()
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.model(self.batch).backward()
            self.optimizer.step()
        return time.process_time() - began


def measure(results: Results) -> None:
    import rankfall

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    sizes = {"width 16, 8 tokens": (16, 8, 2)} if results.tiny else SIZES
    for name, (width, tokens, batch) in sizes.items():
        training = Training(width, tokens, batch, 2 if results.tiny else DEPTH)
        training.seconds(3)
        plain, watched, logged = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(1 if results.tiny else TURNS):
                plain.append(training.seconds(EVERY))
                # The first step of a watcher is logged, and its fiftieth: the first is made before the clock runs.
                with rankfall.watch(training.model, EVERY, Path(folder) / f"{turn}.parquet") as watcher:
                    training.seconds(1)
                    watcher.steps = 0
                    watched.append(training.seconds(EVERY))
                with rankfall.watch(training.model, 1, Path(folder) / f"each{turn}.parquet"):
                    logged.append(training.seconds(5) / 5)
        ratios = [one / other for one, other in zip(watched, plain)]
        step = statistics.median(plain) / EVERY
        about = {"network": name, "axis": "every", "size": EVERY}
        results.add(f"{EVERY} steps", statistics.median(plain), "s", variant="plain", **about)
        results.add(
            f"{EVERY} steps", statistics.median(watched), "s", variant="watched", **about,
            ratio=statistics.median(ratios), against="plain, in turn",
        )  # fmt: skip
        results.add(
            "logged step", statistics.median(logged), "s", variant="watched", **about,
            ratio=statistics.median(logged) / step, against="a step of plain",
        )  # fmt: skip
        share = (statistics.median(logged) - step) / (EVERY * step)
        results.add(
            "share of a run",
            share,
            "1",
            variant=f"watched, every {EVERY}th step",
            **about,
            ratio=1 + share,
            against="plain",
        )
    torch.set_num_threads(before)
