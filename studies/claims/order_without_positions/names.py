"""Names that the experiment and the rules share."""

LOSS = "loss in nats, by training step"
RIGHT = "share of right answers, by training step"
