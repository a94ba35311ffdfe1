"""Masked language models on texts longer or shorter than those of training."""
