"""The event streams of workers, read by one table per CLI."""
