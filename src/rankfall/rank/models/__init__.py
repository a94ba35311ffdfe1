"""Figure of rank collapse in real models."""
