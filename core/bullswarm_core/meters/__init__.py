"""Reads the meters of providers."""
