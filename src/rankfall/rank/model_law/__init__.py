"""The law of collapse on a real model's weights."""
