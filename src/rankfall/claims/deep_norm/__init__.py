"""A test of whether a thousand layers with the skips and start of DeepNorm have usable gradients: Wang et al. 2022."""
