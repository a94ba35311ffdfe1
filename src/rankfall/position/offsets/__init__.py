"""What networks have learned about each offset of two tokens."""
