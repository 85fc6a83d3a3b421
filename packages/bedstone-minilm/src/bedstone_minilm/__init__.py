"""all-MiniLM-L6-v2 as files: where they are, and what one must know to use them."""

from pathlib import Path

__all__ = ["DIMENSIONS", "MODEL", "NAME", "SCALE", "TOKENIZER", "WINDOW"]

NAME = "sentence-transformers/all-MiniLM-L6-v2"
MODEL = Path(__file__).with_name("model.onnx")
TOKENIZER = Path(__file__).with_name("tokenizer.json")
DIMENSIONS = 384
WINDOW = 256  # tokens, the two special ones included
SCALE = 127 / 0.35  # components stay under 0.30: this much of the int8 range is worth using
