"""Processes: children, their identity, descendants, environment, confinement and captured output."""
