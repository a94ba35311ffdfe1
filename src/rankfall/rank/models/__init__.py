"""The picture of rank collapse in real models."""
