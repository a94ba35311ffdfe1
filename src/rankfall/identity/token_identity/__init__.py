"""How often a hidden state still tells which token it came from."""
