"""What bullswarm knows and decides; imports no other part of the project."""

from bullswarm_core.fast import VERSION

__all__ = ["__version__"]
__version__ = VERSION
