"""What an agent's settings hold to call ``bullswarm-hook``: data, in which that word stands for the absolute command.

``claude.json`` and ``codex.json`` are the agents' own hook format, with time-outs in seconds; ``opencode.js`` is a plug-in
file. Whoever may not import this package finds the files beside it, by ``importlib.util.find_spec("bullswarm_hooks")``.
"""
