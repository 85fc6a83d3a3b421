"""Solid ground for agents: one knowledge server over the Model Context Protocol."""

__all__ = ["__version__"]

__version__ = "0.1.0"
