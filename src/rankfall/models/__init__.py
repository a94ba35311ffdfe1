"""Models of Hugging Face transformers, initialised or pretrained, measured with and without their residual connections."""
