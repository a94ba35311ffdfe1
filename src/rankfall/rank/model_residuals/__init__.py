"""How far the tokens of a real model are from being equal, layer by layer."""
