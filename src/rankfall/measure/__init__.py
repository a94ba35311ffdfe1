"""What every measure is given, and how it is applied to a trained cell."""
