"""Claims of the literature about depth, and what this run says about them."""
