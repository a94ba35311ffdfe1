"""What is particular to a family of models: sizes of well-known checkpoints, and the published variants' impurities."""
