LOSS = "loss in nats, by training step"
RIGHT = "share of right answers, by training step"
