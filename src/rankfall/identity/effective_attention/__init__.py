"""Which tokens attention goes to, raw and effective."""
