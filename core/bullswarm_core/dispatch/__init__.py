"""The pools of this machine, now: readings, load and quarantines put together for routing."""
