"""Where state lives: the home and its database."""
