"""Facts about families of models: sizes of well-known checkpoints, small configurations, example inputs, published variants."""
