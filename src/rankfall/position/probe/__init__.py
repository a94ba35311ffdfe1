"""Which attention can tell equal tokens apart, by theory and at random weights."""
