"""Ask whether what is lost at birth matters: how well measurements before training predict a network's training."""
