"""The mathematics of the rank study as a library: residual, rounding, bounds, orders, centred propagation."""
