"""Ability of attention to distinguish equal tokens, by theory and at random weights."""
