from typing import Any

NAME = "lambda_skip"
LOSS = "log10 of the relative residual, lost a layer, by lambda"
KINDS: dict[str, dict[str, Any]] = {
    "attention, every token": {},
    "attention, earlier tokens": {"mask": "causal"},
    "state space model": {"attention": "selective", "mask": "causal"},
}
LAMBDAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
