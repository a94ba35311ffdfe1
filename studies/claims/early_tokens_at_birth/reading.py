"""Read the evidence of `early_tokens_at_birth` for the rules that share it."""

NETWORKS = ("no positions", "ALiBi", "RoPE")
