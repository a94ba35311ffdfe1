"""Two points that a network moves along a circle, or towards each other."""
