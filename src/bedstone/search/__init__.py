"""Keyword, semantic and hybrid search over a store."""

import os

# Threads inside a matrix product cost more than they save here. Must be set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
