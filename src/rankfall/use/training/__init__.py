"""Loss and accuracy during training."""
