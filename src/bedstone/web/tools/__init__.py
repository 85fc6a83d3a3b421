"""Tools: what agents can call, and calling it."""
