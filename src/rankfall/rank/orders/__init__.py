"""The order of contraction: p in res_out ~ C res_in^p."""
