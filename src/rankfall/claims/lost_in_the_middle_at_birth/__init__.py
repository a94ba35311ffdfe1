"""A test of whether averages under a causal mask predict how much each place counts in an untrained network: a claim of 2026."""
