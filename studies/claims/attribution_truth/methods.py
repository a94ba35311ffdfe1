"""Attribute the last token's final state to the tokens of the input, in small networks: each method has (B, T), larger is more.

raw attention     mean over heads of the last layer's weights
rollout, norms    products over layers, as in `identity/attribution/mixing.py`
flow              the largest flow from the last token down to each input, with edges (A + 1) / 2 (A without skips)
value zeroing     by layer, how far the output turns (1 - cosine) without a token's value; a product over layers (Mohebbi et al. 2023)
ALTI              by layer, how much a summand reduces the 1-norm of the output; a product over layers (Ferrando et al. 2022)
decomposed        vectors that sum to the state, carried through all layers, weights and open units fixed (Modarressi et al. 2023)
Jacobian          norm of the state's derivative by the token's sign
ablation          how far the state moves when the token has neither sign
"""

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from rankfall import AttentionView, Network, cell_views, roll_out
from rankfall import mixing_shares as mixing

METHODS = ("raw attention", "rollout", "flow", "norms", "value zeroing", "ALTI", "decomposed", "Jacobian", "ablation")
UNITS = 2**24  # of flow: capacities are integers
TINY = 1e-9  # relative to the largest: smaller values are rounding


def attributions(network: Network, x: Tensor, direction: Tensor) -> dict[str, list[Tensor]]:
    """Return attributions by method and layer, for states x (B, T, D) that enter the first block. `said` (D,) is the direction in which
    inputs differ."""
    views = list(cell_views(network, x[None]))
    layers = [mixing(view) for view in views]
    matrices = {
        "rollout": [layer.rollout for layer in layers],
        "norms": [fill_unknown(layer.norms) for layer in layers],
        "value zeroing": [value_zeroing(view) for view in views],
        "ALTI": [alti(view) for view in views],
    }
    depth = len(views)
    results = {name: [roll_out(product[: n + 1])[:, -1] for n in range(depth)] for name, product in matrices.items()}
    results["raw attention"] = [layer.attention[:, -1] for layer in layers]
    results["flow"] = [flows([layer.rollout for layer in layers[: n + 1]]) for n in range(depth)]
    results["decomposed"] = [part[:, -1].norm(dim=-1) for part in decompose(network, x, views)]
    results["Jacobian"] = jacobians(network, x, direction)
    results["ablation"] = moves(network, x, direction, 1)
    return {name: [cut(value) for value in results[name]] for name in METHODS}


def cut(value: Tensor) -> Tensor:
    """Set values that are rounding, relative to the largest, to zero."""
    return value.masked_fill(value <= TINY * value.abs().amax(-1, keepdim=True), 0.0)


def fill_unknown(matrix: Tensor | None) -> Tensor:
    assert matrix is not None
    return matrix.nan_to_num()


def terms(view: AttentionView) -> Tensor:
    """Return what token i adds to token j's sum, with skip and norm (B, T, T, D), j before i."""
    assert not isinstance(view.join, str)
    parts = view.join.factor * torch.einsum("bhji,bhid->bjid", view.weights, view.map_values())
    if view.join.skip is not None:
        parts = parts + torch.diag_embed(view.join.skip.movedim(-1, 1)).movedim(1, -1)
    if view.join.norm is not None:
        total = parts.sum(-2, keepdim=True) + view.join.factor * view.bias
        parts = view.join.norm.part(parts, total)
    return parts


def value_zeroing(view: AttentionView) -> Tensor:
    """Return value zeroing (B, T, T), whose rows j sum to one."""
    assert not isinstance(view.join, str)
    attended = view.attend()
    output = view.join(attended)  # (B, T, D)
    added = torch.einsum("bhji,bhid->bjid", view.weights, view.map_values())
    turned = []
    for token in range(view.tokens):
        without = view.join(attended - added[:, :, token])
        turned.append(1 - torch.nn.functional.cosine_similarity(without, output, dim=-1))
    return normalise_rows(cut(torch.stack(turned, -1).clamp_min(0)))


def alti(view: AttentionView) -> Tensor:
    """Return ALTI (B, T, T), whose rows j sum to one."""
    parts = terms(view)
    total = parts.sum(-2, keepdim=True)
    size = total.abs().sum(-1)  # (B, T, 1)
    return normalise_rows(cut((size - (total - parts).abs().sum(-1)).clamp_min(0)))


def normalise_rows(matrix: Tensor) -> Tensor:
    size = matrix.sum(-1, keepdim=True)
    return torch.where(size > 0, matrix / size, 0.0)


def flows(matrices: list[Tensor]) -> Tensor:
    """Return the largest flows (B, T). Capacities are rows of the layers' matrices (B, T, T), last layer first."""
    samples, tokens, _ = matrices[0].shape
    flow = torch.zeros(samples, tokens, dtype=matrices[0].dtype)
    for sample in range(samples):
        nodes = (len(matrices) + 1) * tokens
        graph = np.zeros((nodes, nodes), dtype=np.int32)
        for level, matrix in enumerate(matrices):  # nodes of level l are inputs of layer l
            part = (matrix[sample] * UNITS).round().numpy().astype(np.int32)
            graph[(level + 1) * tokens : (level + 2) * tokens, level * tokens : (level + 1) * tokens] = part
        sparse = csr_matrix(graph)
        for token in range(tokens):
            flow[sample, token] = maximum_flow(sparse, nodes - 1, token).flow_value / UNITS
    return flow


def decompose(network: Network, x: Tensor, views: list[AttentionView]) -> list[Tensor]:
    """Return, by layer, the parts (B, T, T, D) of the states that come from each input token, j before i, without biases. Norms,
    weights and open units are kept fixed. Value biases are zero."""
    parts = torch.diag_embed(x.movedim(-1, 1)).movedim(1, -1)
    decomposed = []
    for block, view in zip(network.blocks, views, strict=True):
        assert not isinstance(view.join, str)
        read = parts
        weight = block.attention.value.weight[0].unflatten(1, (view.heads, -1))  # (D, H, d)
        maps = torch.einsum("dhv,hve->hde", weight, view.output)
        parts = view.join.factor * torch.einsum("bhjk,bkid,hde->bjie", view.weights, read, maps)
        parts = parts if view.join.skip is None else parts + read
        if view.join.norm is not None:
            parts = view.join.norm.part(parts, parts.sum(-2, keepdim=True) + view.join.factor * view.bias)
        if block.mlp is not None:
            inner = parts @ block.mlp.inner.weight[0]
            unit = inner.sum(-2, keepdim=True) + block.mlp.inner.bias[0]
            parts = (inner * (block.mlp.activation(unit) / unit).nan_to_num()) @ block.mlp.outer.weight[0]
        decomposed.append(parts)
    return decomposed


def jacobians(network: Network, x: Tensor, direction: Tensor) -> list[Tensor]:
    """Return, by layer (B, T), the norm of the last token's derivative by the sign of token i."""
    tokens = x.shape[1]
    moved: list[list[Tensor]] = []
    for token in range(tokens):
        change = torch.zeros_like(x)
        change[:, token] = direction
        out = torch.func.jvp(lambda y: tuple(network.layers(y[None])), (x,), (change,))[1]
        moved.append([state[0, :, -1].norm(dim=-1) for state in out[1:]])
    return [torch.stack(norms, -1) for norms in zip(*moved, strict=True)]


def moves(network: Network, x: Tensor, direction: Tensor, times: int) -> list[Tensor]:
    """Return, by layer (B, T), how far the last token's state moves when token i has neither sign (`times` 1) or the other one (2)."""
    unchanged = list(network.layers(x[None]))[1:]
    moved: list[list[Tensor]] = []
    for token in range(x.shape[1]):
        changed = x.clone()
        changed[:, token] -= times * (x[:, token] @ direction)[:, None] * direction
        states = list(network.layers(changed[None]))[1:]
        moved.append([(new - old)[0, :, -1].norm(dim=-1) for new, old in zip(states, unchanged, strict=True)])
    return [torch.stack(norms, -1) for norms in zip(*moved, strict=True)]
