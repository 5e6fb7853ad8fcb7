"""The MCP server, `bullswarm mcp`: agents call bullswarm over standard input and output.

`front` answers the handshake at once and needs the standard library alone; everything else here loads behind it, with the
official SDK, and must not be imported by it.
"""
