"""What the field has said about depth, and what this run says of it."""
