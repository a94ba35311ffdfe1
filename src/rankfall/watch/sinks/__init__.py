"""Sinks for the rows of a watched run: a Parquet file, TensorBoard, Weights & Biases, any function. Each is imported only when used."""
