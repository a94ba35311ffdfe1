"""A test of what a gate, softpick and differential attention do to the order of contraction and to equal tokens, predicted before
measuring."""
