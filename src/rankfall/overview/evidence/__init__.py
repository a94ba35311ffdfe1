"""What the experiments of claims have measured."""
