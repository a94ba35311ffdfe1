"""Names that the experiment and the rules share."""

DRAWN = "weight on the first token where nothing is to be copied, by training step"
COPIED = "share of copies that are right, by training step"
TAKEN = "weight on the key of its own, by training step"
