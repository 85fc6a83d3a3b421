"""The parts of the PostgreSQL engine."""
