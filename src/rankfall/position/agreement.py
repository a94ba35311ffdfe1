"""Agreement between theory and networks, at random weights and after training, and the reason for a difference."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.design import Architecture
from rankfall.nets.network import Network, attention_inputs
from rankfall.position.rows import TOLERANCE, Distinct, distinct
from rankfall.position.theory import Verdict, declarations

AGREE, FEWER, MORE, OPEN = "agree", "fewer rows than theory allows", "more rows than theory allows", "theory undecided"
SHORT, AGAINST = "training falls short", "more than theory allows"
CLOSE = 1e4  # a difference below this many tolerances counts as close to the tolerance
GUESS = 0.9  # a loss above this share of a guess's loss counts as no progress


def agreement(theory: int | None, measured: int) -> str:
    """Compare a number of distinct rows with the largest that theory allows."""
    if theory is None:
        return OPEN
    return AGREE if measured == theory else FEWER if measured < theory else MORE


def explain_untrained(verdict: Verdict, measured: Distinct, design: Architecture) -> tuple[str, str]:
    """Return the agreement of networks at random weights with theory, and the reason for a difference.

    The draw with the most distinct rows counts, since a single draw is enough to show what is possible.
    """
    best = int(measured.rows.argmax())
    rows, narrowest = int(measured.rows[best]), float(measured.narrowest[best])
    comparison = agreement(verdict.rows, rows)
    if comparison == FEWER and rows == 0:
        return comparison, "the rows of every draw have entries that are not finite"
    close = f"rows differ by as little as {narrowest:.0e} of their size, close to the tolerance {TOLERANCE:.0e}"
    if comparison == FEWER and narrowest < CLOSE * TOLERANCE:
        return comparison, close
    reasons = {
        AGREE: "",
        OPEN: verdict.reason,
        MORE: rests_on(design),
        FEWER: "theory is an upper bound: with these functions some sums coincide that in general differ",
    }
    return comparison, reasons[comparison]


def rests_on(design: Architecture) -> str:
    """Name the declarations of which one is wrong where there are more distinct rows than theory allows."""
    declared = ", ".join(declarations(design))
    return f"theory rests on {declared}: one of them is wrong, or rounding is taken for a difference"


@dataclass(frozen=True)
class Answers:
    """Answers of a network for the positions of n equal tokens. The first `asked` positions have a learned answer."""

    length: int
    asked: int
    accuracy: float  # over the positions asked for
    loss: float  # mean cross entropy over the same
    rows: int  # distinct rows among all n
    ceiling: float  # the accuracy possible with these rows: one right answer per group of equal rows


@torch.no_grad()
def answers(network: Network, inputs: Tensor, targets: Tensor) -> Answers:
    """Evaluate the network, in float64, on equal tokens (1, 1, n) and their positions.

    `targets` are -1 from the first position that was never learned.
    """
    state = network.features(inputs)  # (1, 1, n, D)
    scores = network.head(state)[:, 0].log_softmax(-1)  # (1, n, C)
    distinct_rows, places = distinct(state[:, 0]), targets[:, 0]
    asked = int((places[0] != -1).sum())
    known, scores = places[:, :asked], scores[:, :asked]
    return Answers(
        length=inputs.shape[2],
        asked=asked,
        accuracy=float((scores.argmax(-1) == known).double().mean(1)),
        loss=-float(scores.gather(-1, known.unsqueeze(-1)).mean((1, 2))),
        rows=int(distinct_rows.rows),
        ceiling=len(distinct_rows.groups[0][:asked].unique()) / asked,
    )


def compare_with_theory(
    trained: Answers,
    verdict: Verdict,
    untrained: int,
    longest: int,
    enough: float,
    dead: float,
    basis: str = "",
) -> tuple[str, str]:
    """Return how a trained network compares with theory and with random weights, and the reason for a difference.

    `longest`: the longest sequence in training; `enough`: the accuracy that passes; `dead`: share of weights that are zero; `basis`:
    the message of `rests_on`.
    """
    accuracy, loss, rows, guess = trained.accuracy, trained.loss, trained.rows, math.log(trained.asked)
    most = untrained if verdict.rows is None else verdict.rows
    correct = f"{accuracy:.2f} of the places are right"
    if accuracy > min(most, trained.asked) / trained.asked:
        cause = f"; {basis}" if verdict.rows is not None and basis else ""
        return AGAINST, f"{correct}, but {most} distinct rows allow no more than {most / trained.asked:.2f}{cause}"
    if verdict.rows is None:
        return OPEN, verdict.reason
    if accuracy >= enough or most == 1:
        return AGREE, ""
    reached = f"{correct}, {rows} of {trained.length} rows distinct, loss {loss:.2f}; "
    if trained.length > longest:
        return SHORT, reached + f"the sequence is longer than any trained on ({longest})"
    if untrained < most:
        return SHORT, reached + f"at random weights only {untrained} rows are distinct where theory allows {most}"
    if dead == 1:
        return SHORT, reached + "all attention weights of a layer became zero, and with them their gradient"
    if rows < min(most, untrained):
        return SHORT, reached + "training made rows equal that differ at random weights"
    if accuracy >= trained.ceiling - 1e-9 and most < trained.asked:
        return AGREE, ""
    if loss > GUESS * guess:
        return SHORT, reached + f"training never left the loss of a guess, {guess:.2f}"
    reached += f"learned in part: a guess has the loss {guess:.2f}, and steps or learning rate did not suffice"
    return SHORT, reached


@torch.no_grad()
def zero_share(network: Network, inputs: Tensor) -> float:
    """Return the largest share, over layers, of visible weights that are zero; 0 for an attention without weights."""
    share = 0.0
    for block, x in zip(network.blocks, attention_inputs(network, inputs)):
        if not hasattr(block.attention, "weights"):
            continue
        weights = block.attention.weights(x)  # (1, 1, H, T, T)
        allowed = block.attention.mask(x.shape[2], x.device)
        visible = torch.ones_like(weights[0, 0, 0], dtype=torch.bool) if allowed is None else allowed
        share = max(share, float((weights[..., visible] == 0).double().mean()))
    return share
