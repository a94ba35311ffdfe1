"""Share of a token's state that comes from each token of the input, in cells."""
