"""How much of the last token of an untrained causal stack comes from each place."""
