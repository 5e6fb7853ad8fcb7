"""Runs: their journal, the fold of it, the steps and attempts, and the verdict at the end."""
