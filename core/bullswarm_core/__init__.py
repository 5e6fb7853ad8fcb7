"""What bullswarm knows and decides; imports no other part of the project."""

from bullswarm_core.fast import VERSION as __version__

__all__ = ["__version__"]
