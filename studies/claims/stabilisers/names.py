GATE, SOFTPICK, DIFFERENTIAL = "gate_and_rank", "softpick_and_rank", "differential_and_rank"
ORDER = "order of contraction, by mask (0 every token, 1 earlier)"
DISTINCT = "distinct rows of equal tokens, by position (0 none, 1 ALiBi)"
DEAD = "share of layers without a weight as drawn, by mask (0 every token, 1 earlier)"
LEFT = "relative residual after a layer, by lambda"
LAMBDAS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
