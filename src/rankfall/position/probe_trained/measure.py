"""Trained networks on the probe: positions of n equal tokens, within and beyond the trained lengths, beside theory and random weights.

Each cell of the task `probe` is evaluated at every length of its splits, in float64, so that rounding does not distinguish tokens.
Accuracy is over the positions that have a learned answer. Chance is the accuracy of the best single answer, and the ceiling that of the
best answers with as many distinct rows as the network has. Where theory allows more than training reaches, `agreement_reason` says what
failed.
"""

import copy
from typing import Any

from rankfall.measure.context import Context
from rankfall.nets.network import Shape
from rankfall.position.agreement import answers, compare_with_theory, rests_on, zero_share
from rankfall.position.rows import distinct, last_rows, random_networks
from rankfall.position.theory import decide
from rankfall.tasks._dataset import TRAIN

INPUTS = "tokens"
TARGETS = "classes"
SEQUENCES = "equal tokens"
LIMITS = {"enough": (0, 1)}


def probe_trained(context: Context, *, draws: int = 4, enough: float = 0.95) -> list[dict[str, Any]]:
    """Measure each cell at each length.

    `draws`: networks of the same architecture at random weights; `enough`: the accuracy that passes.
    """
    network, data, (cell,) = copy.deepcopy(context.network).double().cpu(), context.data, context.cells
    design, longest = cell.architecture, data.train.inputs.shape[2]
    untrained = random_networks(design, Shape("tokens", "classes", longest, data.size_in, longest), draws)
    rows = []
    for name, split in data.splits.items():
        if name == TRAIN:
            continue
        inputs, targets = split.inputs[:, :1].cpu(), split.targets[:, :1].cpu()
        trained = answers(network, inputs, targets)
        verdict = decide(design, trained.length)
        trust = "" if verdict.rows is None else rests_on(design)
        possible = int(distinct(last_rows(untrained, trained.length)).rows.max())
        dead = zero_share(network, inputs)
        agreement, reason = compare_with_theory(trained, verdict, possible, longest, enough, dead, trust)
        row: dict[str, Any] = {"length": trained.length, "asked": trained.asked, "beyond": trained.length > longest}
        row |= {"theory_rows": verdict.rows, "argument": verdict.argument, "untrained_rows": possible}
        row |= {"trained_rows": trained.rows, "accuracy": trained.accuracy, "chance": 1 / trained.asked}
        row |= {"ceiling": trained.ceiling, "loss": trained.loss, "passes": trained.accuracy >= enough}
        rows.append(row | {"agreement": agreement, "agreement_reason": reason})
    return rows
