"""How each cell ended."""
