"""Information in attention weights of real models."""
