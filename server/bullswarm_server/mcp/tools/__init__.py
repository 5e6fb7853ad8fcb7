"""One module per tool: its words for the agent, and what it does."""
