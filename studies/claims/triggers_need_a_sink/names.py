NAME = "triggers_need_a_sink"
DRAWN = "weight on the first token where the answer is zero, by training step"
SOLVED = "share of the answer's variance that is explained at the trigger, by training step"
QUIET = "size of outputs where the answer is zero over that of answers, by training step"
SOFTMAX, RELU, KEY = "softmax", "ReLU, no normalisation", "softmax with a learned key of no value"
KINDS = {SOFTMAX: "softmax", RELU: "relu", KEY: "sink"}
