"""One agent CLI; see connector.json."""
