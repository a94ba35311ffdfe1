"""The stacked trainer."""
