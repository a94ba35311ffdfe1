NAME = "query_gradients"
GRADIENT = "|dL/dW_Q|^2 T / (d^2 sqrt(log T)), by beta"
SHARE = "query gradient over its value at the largest beta, by beta"
FIXED = "|dL/dW_Q|^2 T / (d^2 sqrt(log T)) at one width, by beta"
BELOW, ABOVE = (0.43, 1.0), (2.0, 3.0)  # beta, around the critical sqrt(2)
