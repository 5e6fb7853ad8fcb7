"""The corner that start-up and hooks may import: standard library only, nothing slow."""

VERSION = "0.1.0"
