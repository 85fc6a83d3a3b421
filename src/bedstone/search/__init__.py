"""The hybrid engine: words, meaning, and one order made of both."""

import os

# One query, one core: threads inside a matrix product cost more than they save here. Must be said before numpy is.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
