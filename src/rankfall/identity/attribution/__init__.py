"""How much of a token's state comes from which token of the input, in networks of ours."""
