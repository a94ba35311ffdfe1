"""Where the rows of a watched run go: a Parquet file, TensorBoard, Weights & Biases, any function. None is imported unless asked for."""
