"""Typed answers: their schema, strict JSON, and the child processes that check them and the data of evidence."""
