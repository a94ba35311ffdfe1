"""Every published number beside ours."""
