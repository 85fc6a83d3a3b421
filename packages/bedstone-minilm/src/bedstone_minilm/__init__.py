"""all-MiniLM-L6-v2 as files: where they are, and what one must know to use them."""

from pathlib import Path

__all__ = ["DIMENSIONS", "MODEL", "NAME", "SCALE", "TOKENIZER", "WEIGHTS", "WINDOW", "WORDS"]

NAME = "sentence-transformers/all-MiniLM-L6-v2"
MODEL = Path(__file__).with_name("model.onnx")
WEIGHTS = MODEL.with_name("model.data")  # onnxruntime finds it beside the model, and maps it into memory
WORDS = MODEL.with_name("words.json")  # where in the weights the word vectors are, and how they are scaled
TOKENIZER = Path(__file__).with_name("tokenizer.json")
DIMENSIONS = 384
WINDOW = 256  # tokens, the two special ones included
SCALE = 127 / 0.35  # components stay under 0.30: this much of the int8 range is worth using
