"""What each task made of each seed."""
