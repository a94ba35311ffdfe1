"""Overviews of all studies: the scorecard, the published numbers, joint losses of rank and identity, verdicts on claims and the census."""
