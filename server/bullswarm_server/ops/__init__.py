"""What can be asked of bullswarm, each use case once; knows no command line, no MCP and no text for people."""
