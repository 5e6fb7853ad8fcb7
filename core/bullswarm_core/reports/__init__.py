"""What people and callers are told of runs."""
