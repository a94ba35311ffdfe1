"""The law of rank collapse on a real model's weights."""
