"""The best accuracy without mixing tokens, and the best without positions."""
