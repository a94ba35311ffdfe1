NAME = "vanishing_gradients"
GRADIENT = "norm of the gradient, by what tokens differ by"
WEIGHTS = {
    "queries": "blocks.0.attention.query.weight",
    "keys": "blocks.0.attention.key.weight",
    "values": "blocks.0.attention.value.weight",
    "output": "blocks.0.attention.output.weight",
    "MLP, first map": "blocks.0.mlp.inner.weight",
    "MLP, second map": "blocks.0.mlp.outer.weight",
}
