"""The agent CLIs that bullswarm knows: one folder each, a connector.json and, where that can't say it, provider.py."""
