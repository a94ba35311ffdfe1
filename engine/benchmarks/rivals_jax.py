"""The networks of `clean.py` in JAX. Parameters have the names and initial values of the PyTorch modules."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax  # type: ignore[import-not-found, unused-ignore]
import numpy as np
import optax  # type: ignore[import-not-found, unused-ignore]
from jax import numpy as jnp  # type: ignore[import-not-found, unused-ignore]

from . import clean
from .clean import KINDS, Network, Shape

STEPS = 8  # in one call


class Model:
    """One pass of a network. `p`: its parameters by their names in PyTorch."""

    def __init__(self, shape: Shape, p: dict[str, Any], key: Any, dropout: float) -> None:
        self.shape, self.p, self.key, self.dropout = shape, p, key, dropout

    def linear(self, name: str, x: Any) -> Any:
        y = x @ self.p[f"{name}.weight"].T
        return y + self.p[f"{name}.bias"] if f"{name}.bias" in self.p else y

    def norm(self, name: str, x: Any) -> Any:
        """Normalise to the root mean square, after subtracting the mean if the norm has a bias."""
        centred = x - x.mean(-1, keepdims=True) if f"{name}.bias" in self.p else x
        scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-12)
        return scaled * self.p[f"{name}.weight"] + self.p.get(f"{name}.bias", 0.0)

    def drop(self, x: Any) -> Any:
        if not self.dropout:
            return x
        self.key, key = jax.random.split(self.key)
        return jnp.where(jax.random.bernoulli(key, 1 - self.dropout, x.shape), x / (1 - self.dropout), 0.0)

    def gau(self, name: str, x: Any) -> Any:
        shared = jax.nn.silu(self.linear(f"{name}.shared", x))
        q, k = (shared * self.p[f"{name}.gain"][i] + self.p[f"{name}.bias"][i] for i in (0, 1))
        weights = self.drop(jax.nn.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, -1))
        value = jax.nn.silu(self.linear(f"{name}.value", x))
        return self.linear(f"{name}.output", jax.nn.silu(self.linear(f"{name}.gate", x)) * (weights @ value))

    def heads(self, x: Any) -> Any:
        return x.reshape(*x.shape[:2], self.shape.heads, -1).swapaxes(1, 2)  # (B, H, T, d)

    def attention(self, name: str, x: Any) -> Any:
        kind = self.shape.attention
        if kind is clean.Gau:
            return self.gau(name, x)
        q, k, v = (self.heads(self.linear(f"{name}.{part}", x)) for part in ("query", "key", "value"))
        if kind is clean.Linear:
            q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
            mixed = (q @ (k.swapaxes(-1, -2) @ v)) / (q @ k.sum(-2)[..., None])
        elif kind is clean.Delta:
            mixed = jnp.stack(list(self.delta(q, k, v, jax.nn.sigmoid(self.linear(f"{name}.rate", x)))), 2)
        else:
            scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
            if kind is clean.L2:
                raised = jnp.exp(scores - scores.max(-1, keepdims=True))
                weights = raised / jnp.sqrt((raised * raised).sum(-1, keepdims=True))
            else:
                weights = jax.nn.softmax(scores, -1)
            mixed = self.drop(weights) @ v
        if kind is clean.Gate:
            mixed = mixed * self.heads(jax.nn.sigmoid(self.linear(f"{name}.gate", x)))
        return self.linear(f"{name}.output", mixed.swapaxes(1, 2).reshape(x.shape))

    def delta(self, q: Any, k: Any, v: Any, rate: Any) -> Iterator[Any]:
        k = k / jnp.sqrt((k * k).sum(-1, keepdims=True))
        state = jnp.zeros((*k.shape[:2], k.shape[-1], k.shape[-1]))  # (B, H, d, d)
        for t in range(k.shape[2]):
            key = k[:, :, t, :, None]
            error = v[:, :, t, :, None] - state @ key
            state = state + rate[:, t, :, None, None] * error * key.swapaxes(-1, -2)
            yield (state @ q[:, :, t, :, None])[..., 0]

    def scores(self, inputs: Any) -> Any:
        x = self.p["embedding.weight"][inputs] + self.p["positions"]  # (B, T, D)
        x = self.drop(self.norm("norm", x))
        for i in range(self.shape.depth):
            block = f"blocks.{i}"
            x = self.norm(f"{block}.norm", x + self.drop(self.attention(f"{block}.attention", x)))
            if self.shape.mlp:
                inner = jax.nn.gelu(self.linear(f"{block}.mlp.0", x), approximate=False)
                x = self.norm(f"{block}.norm2", x + self.drop(self.linear(f"{block}.mlp.2", inner)))
        return self.linear("head", x)


def jax_steps(name: str, count: int, dropout: float) -> Callable[[], None]:
    """Return a function that takes STEPS steps of all members."""
    shape, rng, optimizer = KINDS[name], np.random.default_rng(0), optax.adam(1e-3)
    modules = [dict(Network(shape, dropout).named_parameters()) for _ in range(count)]
    values = {key: jnp.stack([np.array(module[key].detach()) for module in modules]) for key in modules[0]}
    size = (count, shape.batch, shape.length)
    inputs, targets = (jnp.asarray(rng.integers(n, size=size)) for n in (shape.inputs, shape.classes))

    def loss(p: dict[str, Any], x: Any, y: Any, key: Any) -> Any:
        scores = Model(shape, p, key, dropout).scores(x)
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    def step(p: Any, state: Any, x: Any, y: Any, key: Any) -> Any:
        updates, state = optimizer.update(jax.grad(loss)(p, x, y, key), state, p)
        return optax.apply_updates(p, updates), state

    @partial(jax.jit, donate_argnums=0)
    def take_steps(carry: Any) -> Any:
        def take_step(carry: Any, _: None) -> Any:
            p, state, key = carry
            key, own = jax.random.split(key)
            p, state = jax.vmap(step)(p, state, inputs, targets, jax.random.split(own, count))
            return (p, state, key), None

        return jax.lax.scan(take_step, carry, None, STEPS)[0]

    held = [(values, jax.vmap(optimizer.init)(values), jax.random.key(0))]

    def call() -> None:
        held[0] = jax.block_until_ready(take_steps(held[0]))

    return call
