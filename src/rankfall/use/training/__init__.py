"""The course of training."""
