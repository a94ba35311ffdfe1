"""A block, and a network, on a split state (`state.py`)."""

from typing import Any

from torch import Tensor

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.blocks.attention import Attention as Block
from rankfall.nets.network import Network
from rankfall.rank.centred.assumptions import Unknown, confirm, function_name, keeps_form
from rankfall.rank.centred.attention import FORM, attend
from rankfall.rank.centred.expanded import expand_map
from rankfall.rank.centred.state import State, begin
from rankfall.rank.centred.tokenwise import join, mlp, norm


def step(block: Any, state: State) -> State:
    """Apply one block, in the order of `nets/blocks/attention.py`. Any other block is expanded by its derivatives, as a whole."""
    if not hasattr(block, "attention"):  # a function of a user, which might not accept another call
        raise Unknown(f"no centred form of {function_name(block)}")
    if not keeps_form(block, Block, "forward"):
        return expand_map(block, state, f"the block {function_name(block)}")
    pre = block.placement == "pre"
    state = join(block.residual, state, mix(block.attention, norm(block.norm1, state) if pre else state))
    state = state if pre else norm(block.norm1, state)
    if block.mlp is None:
        return state
    state = join(block.mlp_residual, state, mlp(block.mlp, norm(block.norm2, state) if pre else state))
    return state if pre else norm(block.norm2, state)


def mix(attention: Any, state: State) -> State:
    """Apply multi-head attention by the formulas of its parts, any other attention by its derivatives."""
    if keeps_form(attention, Multihead, *FORM):
        return attend(attention, state)
    return expand_map(attention, state, f"the attention {function_name(attention)}")


def propagate(network: Network, inputs: Tensor) -> list[State]:
    """Return split states at layers 0 .. L, for a float64 network."""
    if network.remembers:
        raise Unknown("its layers read the results of earlier layers: no centred form")
    states = [begin(network, network.lift(inputs))]
    for block in network.blocks:
        states.append(step(block, states[-1]))
    confirm(network, inputs, states)
    return states
