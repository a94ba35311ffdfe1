"""How far each layer's states are from rank one, as far as a number format can tell."""
