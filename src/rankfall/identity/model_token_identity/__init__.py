"""How often a hidden state of a real model still tells which token it came from."""
