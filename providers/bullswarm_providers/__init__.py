"""The agent CLIs that bullswarm knows: one folder each, with a connector.json and, where data can't say it, a provider.py."""
