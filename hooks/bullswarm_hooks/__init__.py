"""What the calling agents run at their own events: tiny, standard library only, silent whenever in doubt.

Rule: docs/design/surfaces.md, "Hooks".
"""
