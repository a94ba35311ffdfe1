"""Agreement between theory and networks at random weights, and reasons for a difference."""

import torch
from torch import Tensor

from rankfall.design import Architecture
from rankfall.nets.attention_inputs import attention_inputs
from rankfall.nets.network import Network
from rankfall.position.rows import TOLERANCE, Distinct
from rankfall.position.sight import declarations
from rankfall.position.theory import Verdict

AGREE, FEWER, MORE, OPEN = "agree", "fewer rows than theory allows", "more rows than theory allows", "theory undecided"
ROUNDED = 1e-9  # tolerance for the declared sum of a row of weights
CLOSE = 1e4  # a difference below this many tolerances counts as close to the tolerance


def agreement(theory: int | None, measured: int) -> str:
    if theory is None:
        return OPEN
    return AGREE if measured == theory else FEWER if measured < theory else MORE


def explain_untrained(
    verdict: Verdict, found: Distinct, network: Network, tokens: int, design: Architecture
) -> tuple[str, str]:
    """Return the agreement of networks at random weights with theory, and the reason for a difference.

    The draw with the most distinct rows counts, since a single draw is enough to show what is possible.
    """
    said = agreement(verdict.rows, int(found.rows.max()))
    if said == AGREE:
        return said, ""
    if said == OPEN:
        return said, verdict.reason
    if said == MORE:
        return said, rests_on(design, network, tokens)
    return said, why_fewer(found, network, tokens)


@torch.no_grad()
def rests_on(design: Architecture, network: Network, tokens: int) -> str:
    """Return a message that names the wrong declaration where there are more distinct rows than theory allows.

    If no declaration is detected as wrong, the message names all of them.
    """
    said = declarations(design)
    equal = torch.zeros(len(next(network.parameters())), 1, tokens, dtype=torch.int64)
    for block, x in zip(network.blocks, attention_inputs(network, equal)):
        if not hasattr(block.attention, "weights"):
            continue
        sums = block.attention.weights(x).sum(-1)  # (K, 1, H, T)
        for one in said:
            wanted = {"ROWS = 'one'": 1.0, "ROWS = 'zero'": 0.0, "ROWS = 'constant'": sums[..., :1]}
            for declared, value in wanted.items():
                if one.startswith(declared) and bool(((sums - value).abs() > ROUNDED * (1 + sums.abs())).any()):
                    low, high = float(sums.min()), float(sums.max())
                    return (
                        f"theory rests on {one}, which is wrong: rows of these weights sum to {low:.3g} to {high:.3g}"
                    )
    return f"theory rests on {', '.join(said)}: one of them is wrong, or rounding is taken for a difference"


@torch.no_grad()
def why_fewer(found: Distinct, network: Network, tokens: int) -> str:
    """Return the reason why these networks have fewer distinct rows than theory allows."""
    best = int(found.rows.argmax())
    if not bool(found.rows.any()):
        return "the rows of every draw have entries that are not finite"
    if float(found.narrowest[best]) < CLOSE * TOLERANCE:
        return f"rows differ by as little as {float(found.narrowest[best]):.0e} of their size, close to the tolerance {TOLERANCE:.0e}"
    mixer = network.blocks[0].attention
    if hasattr(mixer, "weights"):
        equal = torch.zeros(len(found.rows), 1, tokens, dtype=torch.int64)
        x = attention_inputs(network, equal)[0]
        weights = mixer.weights(x)  # (K, 1, H, T, T)
        if are_rows_alike(weights):
            return "all rows of weights are the same: what scores add for places cancels in the normaliser"
        visible = mixer.logits(x).isfinite() if hasattr(mixer, "logits") else weights != 0
        zeros = float(((weights == 0) & visible).sum() / visible.sum())
        if zeros:
            return f"{zeros:.0%} of the weights that the mask lets through are zero at these draws"
    return "theory is an upper bound: with these functions some sums coincide that in general differ"


def are_rows_alike(weights: Tensor) -> bool:
    """Check whether all rows of weights (..., T, T) equal the first row, within the tolerance."""
    return bool((weights - weights[..., :1, :]).abs().max() <= TOLERANCE * weights.abs().max())
