"""The reference recall stack: documented systems, each in its legacy and its fixed behaviour."""

__version__ = "0.1.0"
