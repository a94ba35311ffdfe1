"""Networks whose every activation and parameter has a leading member axis: (K, B, T, D) and (K, ...)."""
