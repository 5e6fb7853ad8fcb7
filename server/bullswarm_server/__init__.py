"""The ways in: the `bullswarm` command, the kernel process and the displays."""
