"""The metadata of a docs corpus, as `metadata.json` records it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # most corpora have no prompts
    from bedstone.services.docs.source.prompt_templates import PromptTemplate

METADATA_VERSION = "1.1.0"
DEFAULT_DESCRIPTION = "Documentation corpus"
CORPUS = "corpus"  # the facet that selects one of several corpora


@dataclass(frozen=True)
class Facet:
    """A facet to filter by. Files with one of the `resource_values` are resources."""

    description: str
    values: tuple[str, ...]
    collapses_variants: bool = False
    resource_values: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Facet":
        """Restore a facet."""
        properties = data.get("properties", {})
        return cls(
            description=data["description"],
            values=tuple(data["values"]),
            collapses_variants=bool(data.get("vector_collapse")),
            resource_values=tuple(value for value, entry in properties.items() if entry.get("mcp_resource")),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the index, without settings that are not set."""
        data: dict[str, Any] = {"description": self.description, "values": list(self.values)}
        if self.collapses_variants:
            data["vector_collapse"] = True
        if self.resource_values:
            data["properties"] = {value: {"mcp_resource": True} for value in self.resource_values}
        return data


@dataclass(frozen=True)
class IndexStats:
    """The size of an index, and when and from which commit it was built."""

    total_chunks: int = 0
    total_files: int = 0
    indexed_at: str = ""
    source_commit: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "IndexStats":
        """Restore the statistics."""
        return cls(**{item.name: data[item.name] for item in fields(cls) if item.name in data})


@dataclass(frozen=True)
class EmbeddingOrigin:
    """The embedder that made the vectors; `options` is what its provider needs to find it again."""

    provider: str
    model: str
    dimensions: int
    fingerprint: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "EmbeddingOrigin":
        """Restore an origin."""
        known = {item.name: data[item.name] for item in fields(cls) if item.name != "options"}
        return cls(**known, options={key: value for key, value in data.items() if key not in known})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the index, which providers read too."""
        data = asdict(self)
        options = data.pop("options")
        return {**data, **options}


@dataclass(frozen=True)
class CorpusMetadata:
    """What `metadata.json` records of a corpus. A reader ignores keys that it does not know."""

    description: str = DEFAULT_DESCRIPTION
    taxonomy: Mapping[str, Facet] = field(default_factory=dict)
    stats: IndexStats = IndexStats()
    embedding: EmbeddingOrigin | None = None
    files: Mapping[str, str] = field(default_factory=dict)  # title by path
    prompts: "tuple[PromptTemplate, ...]" = ()
    tool_descriptions: Mapping[str, str] = field(default_factory=dict)
    given_description: str | None = None  # by an option of this or an earlier build
    given_instructions: str | None = None  # by an option of this or an earlier build
    instructions: str | None = None  # given, or those of a manifest
    cursor_key: str = ""
    state: str = ""  # changes with the content; the same for every copy of the index
    generation: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CorpusMetadata":
        """Restore the metadata; raise KeyError or TypeError if they are incomplete."""
        embedding = data.get("embedding")
        description = data.get("corpus_description", DEFAULT_DESCRIPTION)
        is_given = description != DEFAULT_DESCRIPTION and not data.get("derived_description")
        return cls(
            description=description,
            taxonomy={key: Facet.from_json(entry) for key, entry in data.get("taxonomy", {}).items()},
            stats=IndexStats.from_json(data.get("stats", {})),
            embedding=EmbeddingOrigin.from_json(embedding) if embedding else None,
            files={path: entry["title"] for path, entry in data.get("files", {}).items()},
            prompts=_restore_prompts(data.get("prompts")),
            tool_descriptions=data.get("tool_descriptions", {}),
            given_description=description if is_given else None,
            given_instructions=data.get("told_instructions"),
            instructions=data.get("mcpServerInstructions"),
            cursor_key=data.get("cursor_key", ""),
            state=data.get("state", ""),
            generation=data["index"]["generation"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the index."""
        is_derived = self.given_description is None and self.description != DEFAULT_DESCRIPTION
        return {
            "metadata_version": METADATA_VERSION,
            "corpus_description": self.description,
            **({"derived_description": True} if is_derived else {}),
            "taxonomy": {key: facet.to_json() for key, facet in self.taxonomy.items()},
            "stats": asdict(self.stats),
            "embedding": self.embedding.to_json() if self.embedding else None,
            "files": {path: {"title": title} for path, title in self.files.items()},
            "prompts": [template.to_json() for template in self.prompts],
            "tool_descriptions": dict(self.tool_descriptions),
            "told_instructions": self.given_instructions,
            "mcpServerInstructions": self.instructions,
            "cursor_key": self.cursor_key,
            "state": self.state,
            "index": {"generation": self.generation},
        }


def merge_taxonomies(corpora: Mapping[str, CorpusMetadata]) -> dict[str, Facet]:
    """Return the facets of all corpora, given their metadata; several corpora add the facet `corpus`."""
    if len(corpora) == 1:
        (metadata,) = corpora.values()
        return dict(metadata.taxonomy)
    merged = {CORPUS: Facet(f"Filter results by {CORPUS}.", tuple(sorted(corpora)))}
    for metadata in corpora.values():
        for key, entry in metadata.taxonomy.items():
            facet = merged.setdefault(key, Facet(entry.description, ()))
            merged[key] = replace(facet, values=tuple(sorted({*facet.values, *entry.values})))
    return merged


def merge_prompts(corpora: Mapping[str, CorpusMetadata]) -> "dict[str, PromptTemplate]":
    """Return the prompt templates of all corpora by name; with several corpora, names begin with the corpus."""
    is_single = len(corpora) == 1
    return {
        template.name if is_single else f"{name}/{template.name}": template
        for name, metadata in corpora.items()
        for template in metadata.prompts
    }


def _restore_prompts(data: list[Mapping[str, Any]] | None) -> "tuple[PromptTemplate, ...]":
    if not data:
        return ()
    from bedstone.services.docs.source.prompt_templates import PromptTemplate  # noqa: PLC0415

    return tuple(PromptTemplate.from_json(item) for item in data)
