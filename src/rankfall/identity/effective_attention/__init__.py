"""Raw and effective attention by kind of token."""
