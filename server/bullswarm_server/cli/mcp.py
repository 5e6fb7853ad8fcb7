"""`bullswarm mcp`: the MCP server over standard input and output; agents start it, people only register it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from bullswarm_server.cli.context import CommandContext

_HELP = """usage: bullswarm mcp

Speaks the Model Context Protocol on standard input and output. An agent starts it; for Claude Code:
  claude mcp add --scope user bullswarm -- bullswarm mcp
"""


def run(arguments: list[str], context: CommandContext) -> int:
    """Serve until the client ends; takes no arguments."""
    return serve(arguments, out=context.out, err=context.err)


def serve(arguments: list[str], *, out: TextIO, err: TextIO) -> int:
    """Do the same, with no more than the two streams, since a client counts the milliseconds until the introduction."""
    if arguments in (["--help"], ["-h"]):
        out.write(_HELP)
        return 0
    if arguments:
        err.write(f'bullswarm: mcp takes no arguments, and "{arguments[0]}" was given\n')
        return 2
    from bullswarm_server.mcp import stdio

    if err.isatty():
        err.write("waiting for JSON-RPC on standard input (an agent starts this; Ctrl-C ends it)\n")
    return stdio.serve()
