"""What the experiment and the rule both name."""

from __future__ import annotations

NAME = "query_gradients"
GRADIENT = "|dL/dW_Q|^2 T / (d^2 sqrt(log T)), by beta"
SHARE = "query gradient over its value at the largest beta, by beta"
BY_WIDTH = "query gradient over its value at the largest beta, by width"
