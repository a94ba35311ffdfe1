"""How concentrated attention weights are, and how much of them the first token gets."""
