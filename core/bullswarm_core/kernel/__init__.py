"""The kernel drives one run from its start to its end."""
