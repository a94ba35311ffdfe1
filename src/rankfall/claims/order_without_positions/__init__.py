"""A test of whether language models learn order without positions: Haviv et al. 2022, causal and masked."""
