"""Overviews of all studies: the scorecard, the published numbers, joint losses of rank and identity, predictions, claims and the census."""
