"""Share of each position in the last token's state, in causal cells."""
