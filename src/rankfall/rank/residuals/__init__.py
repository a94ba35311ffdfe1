"""Distance of each layer's states from rank one, as far as a number format can resolve it."""
