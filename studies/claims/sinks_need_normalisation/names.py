DRAWN = "weight on the first token where nothing is to be copied, by training step"
COPIED = "share of copies that are right, by training step"
TAKEN = "weight on the key of its own, by training step"
SOFTMAX, OWN_KEY = "softmax", "softmax with a learned key of no value"
