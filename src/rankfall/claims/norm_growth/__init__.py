"""Tests of how fast states grow with depth in networks with norms before: exponentially (Sun et al. 2025), or linearly (Kimi Team 2026, Kim
et al. 2025)."""
