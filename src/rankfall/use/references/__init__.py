"""Best accuracy without mixing tokens, and best accuracy without positions."""
