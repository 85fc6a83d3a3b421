"""The page for people: what is served, and how to connect to it."""

from bedstone.web.home import page_routes

__all__ = ["page_routes"]
