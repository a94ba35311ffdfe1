"""How much of the last token of networks of ours comes from each place."""
