"""Every setting: its name, type, default and one line of help."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, SecretStr, field_validator

from bedstone.settings.tokens import check_token, read_token_file


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _parse_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def as_list(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value if value is None else [value]


SHARED_STORES = ("postgresql:",)  # how their addresses begin
S = TypeVar("S", bound="Section")
Names = Annotated[list[str], BeforeValidator(_split)]
Paths = Annotated[list[Path], BeforeValidator(as_list)]


class Section(BaseModel):
    """A group of settings under one name; base of the sections that other packages declare for their toolsets."""

    # Built on first use, as one tree: building each section separately would cost milliseconds at every start.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LogSettings(Section):
    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        "info", description="Minimum log level"
    )
    format: Literal["text", "json"] = Field("text", description="Log format: text for people, json for programs")


class McpSettings(Section):
    transport: Literal["stdio", "http", "sse", "ws", "all"] = Field(
        "stdio", description="How clients connect; http serves every network transport, all adds stdio"
    )
    host: str = Field("127.0.0.1", description="Address to listen on; anything but loopback requires a token")
    port: int = Field(3000, description="Port to listen on", ge=1, le=65535)
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s/]+(/\S*)?$",
        description="Address under which people open the page, such as https://kb.example.org; answers link to it",
    )
    token: SecretStr | None = Field(
        None, description="Bearer token that every request must carry; prefer token_file", min_length=1
    )
    token_file: Path | None = Field(None, description="File with the bearer token")
    secret: SecretStr | None = Field(
        None,
        description="Secret that signs logins, forms and cursors, the same on all servers behind a load balancer; "
        "default: one in the shared database, or of the data folder",
        min_length=1,
    )
    secret_file: Path | None = Field(None, description="File with the secret that signs logins, forms and cursors")
    stateless: bool | None = Field(
        None,
        description="Serve handshake-era HTTP clients without sessions, so that any server can answer any request; "
        "default: only with a shared database",
    )
    allowed_hosts: Names = Field([], description="Additional host names that clients may use; * allows any")
    allowed_origins: Names = Field(
        [], description="Other origins whose pages may connect, such as https://app.example:8443"
    )
    schema_profile: Literal["contract", "strict"] = Field(
        "contract",
        description="Form of the tools' arguments: as their contracts print them, or closed for clients that need that",
    )
    json_response: bool = Field(
        False, description="Answer handshake-era HTTP clients with plain JSON: allows large results, disables progress"
    )


class LimitSettings(Section):
    max_connections: int = Field(
        512, ge=8, description="Open connections; at most half of the files that the process may open"
    )
    max_connections_per_address: int = Field(
        128, ge=1, description="Open connections from one address; this machine is exempt, for reverse proxies"
    )
    header_seconds: float = Field(10, gt=0, description="Time in which the headers of a request must arrive")
    stall_seconds: float = Field(
        30, gt=0, description="Maximum pause of a client that sends a body or receives an answer"
    )
    keep_alive_seconds: int = Field(5, ge=1, description="Time that an idle connection stays open between requests")
    max_sessions: int = Field(
        1_000, ge=1, description="MCP sessions over HTTP; the one idle for the longest time ends for a new one"
    )
    max_sessions_per_address: int = Field(
        200, ge=1, description="MCP sessions over HTTP from one address; this machine is exempt"
    )
    session_idle_seconds: float = Field(1_800, gt=0, description="Time after which an idle MCP session ends")
    free_attempts: int = Field(
        5, ge=1, description="Wrong tokens from one address before it must wait, twice as long after each further one"
    )
    max_wait_seconds: float = Field(60, gt=0, description="Maximum wait after a wrong token")


class KbSettings(Section):
    file_path: Path | None = Field(None, description="Text file that the kb tools serve")
    description: str = Field("Team knowledge base", description="Description of the text that get_kb_info returns")
    reload: Literal["on-change", "never"] = Field("on-change", description="When to reload the file")


class DocsSettings(Section):
    index: Paths = Field([], description="Index folder written by `bedstone docs build`; one corpus per folder")
    dir: Paths = Field([], description="Documentation folder to index at start and serve; one corpus per folder")
    published: Names = Field(
        [],
        description="Address of a corpus that `bedstone docs publish` published, such as s3://BUCKET/docs/NAME; "
        "comma-separated",
    )
    watch: bool = Field(False, description="Rebuild the index whenever a file changes")
    tool_prefix: str | None = Field(None, description="Prefix for the docs tools, as in PREFIX_search_docs")
    phrase_slop: int = Field(0, ge=0, le=5, description="Phrase slop, in words")
    proximity_weight: float = Field(1.25, ge=0, le=10, description="Weight of word proximity")
    vector_weight: float = Field(1.0, ge=0, le=10, description="Weight of semantic search relative to keyword search")


class StorageSettings(Section):
    documents_path: Path | None = Field(None, description="Copies of added files; default: DATA/documents")
    vector_db_path: Path | None = Field(None, description="Store and indexes of added files; default: DATA/index")
    database: str | None = Field(
        None, description="Store of added files, such as postgresql://USER@HOST/DATABASE; default: a SQLite file"
    )
    blobs: str | None = Field(
        None,
        description="Place for copies and texts of added files that other machines use too, such as "
        "s3://BUCKET/PREFIX?endpoint=URL&region=NAME; default: a folder",
    )
    allowed_roots: Paths = Field([], description="Folders that files may be added from; empty: any folder")
    model_cache_path: Path | None = Field(None, description="Folder for the cache of embeddings")
    watch: Paths = Field([], description="Folders to keep in sync with the knowledge base")


class ChunkingSettings(Section):
    chunk_size: int = Field(500, ge=100, le=10_000, description="Maximum chunk size, in characters")
    chunk_overlap: int = Field(50, ge=0, description="Overlap of neighbouring chunks, in characters (whole sentences)")
    strategy: Literal["sentence", "paragraph", "fixed"] = Field("sentence", description="Where to split long text")


class ProcessingSettings(Section):
    max_concurrent_tasks: int = Field(3, ge=1, le=64, description="Maximum number of files processed at once")
    max_file_size_mb: int = Field(100, ge=1, description="Maximum file size, in megabytes")


class OcrSettings(Section):
    enabled: bool = Field(True, description="Recognise text in images and scans")
    language: str = Field("eng", description="Language of scans, as a tesseract code")
    data_path: Path | None = Field(None, description="Folder with tesseract language data; English is bundled")
    images: Literal["none", "pdf", "all"] = Field(
        "pdf", description="Recognise text in images on pages that also have text: in PDF only, or in Office files too"
    )
    force_ocr: bool = Field(False, description="Run OCR on every page, even where text can be extracted")
    confidence_threshold: float = Field(0.0, ge=0, le=1, description="Minimum OCR confidence; text below it is dropped")


class CorpusTuning(Section):
    """What `bedstone tune --write` found better for one corpus; what is not set stays as it is."""

    corpus: str = Field(description="`docs/NAME` for a documentation corpus, `documents` for added files")
    semantic_share: float | None = Field(
        None, ge=0, le=0.95, description="Share of semantic search in the ranking of questions; usually 0.5"
    )
    promote_documents: bool | None = Field(
        None, description="Whether good chunks raise the rank of the others of their page; documentation only"
    )
    proximity: float | None = Field(None, ge=0, le=10, description="Weight of word proximity; usually 1")


class SearchSettings(Section):
    index: str = Field(
        "embedded", description="Search index of added files: embedded, opensearch, or one from another package"
    )
    default_top_k: int = Field(10, ge=1, description="Default number of results of knowledge-search")
    max_top_k: int = Field(50, ge=1, le=1_000, description="Maximum number of results of knowledge-search")
    tuning: Annotated[list[CorpusTuning], BeforeValidator(_parse_json)] = Field(
        [], description="Settings of single corpora, as `bedstone tune --write` writes them; JSON in a variable"
    )

    def tuning_of(self, corpus: str) -> CorpusTuning | None:
        """Return the settings of a corpus; the last entry decides."""
        return next((item for item in reversed(self.tuning) if item.corpus == corpus), None)


class OpenSearchSettings(Section):
    hosts: Names = Field(
        ["http://127.0.0.1:9200"], description="Addresses of the nodes, comma-separated, such as https://HOST:9200"
    )
    user: str | None = Field(None, description="User of the search cluster")
    password: SecretStr | None = Field(None, description="Password of that user")
    token: SecretStr | None = Field(None, description="Bearer token, instead of a user")
    verify: bool = Field(True, description="Check the certificates of the nodes")
    ca_file: Path | None = Field(None, description="Certificates to trust; default: those of Python")
    prefix: str = Field(
        "bedstone", pattern=r"^[a-z0-9][a-z0-9_-]{0,60}$", description="Beginning of the names of all indexes"
    )
    shards: int = Field(1, ge=1, le=1024, description="Shards of a new index; 10 to 20 million chunks fit into one")
    replicas: int = Field(1, ge=0, le=20, description="Copies of each shard, in addition to the first one")
    timeout_seconds: float = Field(10.0, gt=0, le=300, description="Longest wait for an answer of a node")

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, hosts: list[str]) -> list[str]:
        for host in hosts:
            if not host.startswith(("http://", "https://")):
                raise ValueError("an address begins with http:// or https://")
            if "@" in host:
                raise ValueError("user and password belong in opensearch.user and opensearch.password")
        if not hosts:
            raise ValueError("at least one address is needed")
        return hosts


class EmbeddingSettings(Section):
    provider: str = Field(
        "minilm",
        description="Embedder: minilm (English), use-multilingual (15 languages), openai (any service with its "
        "protocol), none, or one from another package",
    )
    model_name: str | None = Field(None, description="Model of the embedding service; `none` disables semantic search")
    dimensions: int | None = Field(None, ge=1, description="Vector length, for models that offer a choice")
    api_key: SecretStr | None = Field(None, description="API key of the embedding service; OPENAI_API_KEY works too")
    base_url: str | None = Field(None, description="Base URL of the embedding service")
    coverage: Literal["fast", "full"] = Field(
        "fast",
        description="What the local model embeds of a docs corpus: fast is the first passages of each page, and "
        "estimates for the others; full is every passage",
    )
    batch_size: int = Field(128, ge=1, description="Texts per request")
    concurrency: int = Field(4, ge=1, le=64, description="Maximum number of concurrent requests")
    max_retries: int = Field(3, ge=0, le=20, description="Retries when the service is busy")


class SalesforceSettings(Section):
    org: str | None = Field(None, description="Org to query; default: the only known one")
    demo_port: int | None = Field(None, ge=1, le=65535, description="Port of a demo org to run beside the server")
    article_source: Literal["live", "mirror", "live-or-mirror"] = Field(
        "live-or-mirror", description="Where articles come from; the mirror can stand in while the org is down"
    )
    article_body_fields: Names = Field(
        [], description="Fields that hold the text of an article; default: detected, without internal ones"
    )
    article_excluded_fields: Names = Field(
        [], description="Fields to leave out of the text of an article; internal and private ones always are"
    )
    warn_share: float = Field(0.8, ge=0, le=1, description="Warn above this share of the daily API limit")
    call_floor: int = Field(0, ge=0, description="Daily API calls to hold in reserve")
    more_tools: Names = Field(
        [], description="Additional salesforce_graph tools to offer, by name; `all` offers every one"
    )
    categories: dict[str, str] = Field({}, description="Category overrides, by object name")
    sync_names: bool = Field(True, description="Sync company names with the schema, to tell them from field names")
    sync_minutes: int = Field(0, ge=0, description="Minutes between syncs by the server; 0 disables them")


class Settings(Section):
    """The settings tree."""

    toolsets: Names | None = Field(None, description="Toolsets to serve, comma-separated; default: all configured")
    name: str | None = Field(None, description="Server name that clients see")
    data_dir: Path | None = Field(None, description="Data folder")
    read_only: bool = Field(False, description="Refuse every call that changes something")
    role: Literal["all", "answers", "work"] = Field(
        "all",
        description="What this process does with added files: answers leaves reading and embedding them to others, "
        "work (`bedstone work`) does only that",
    )
    log: LogSettings = Field(default_factory=LogSettings)
    mcp: McpSettings = Field(default_factory=McpSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    chunking: ChunkingSettings = Field(default_factory=ChunkingSettings)
    processing: ProcessingSettings = Field(default_factory=ProcessingSettings)
    ocr: OcrSettings = Field(default_factory=OcrSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    opensearch: OpenSearchSettings = Field(default_factory=OpenSearchSettings)
    docs: DocsSettings = Field(default_factory=DocsSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    kb: KbSettings = Field(default_factory=KbSettings)
    salesforce: SalesforceSettings = Field(default_factory=SalesforceSettings)

    _extra: Mapping[str, Section] = PrivateAttr(default_factory=dict)
    _config_files: tuple[Path, ...] = PrivateAttr(())

    def section(self, name: str, kind: type[S]) -> S:
        """Return the section that a toolset of another package declares under its own name."""
        found = self._extra.get(name)
        return found if isinstance(found, kind) else kind()

    def with_sections(self, sections: Mapping[str, Section]) -> "Settings":
        """Return the same settings with the sections of other packages."""
        self._extra = dict(sections)
        return self

    def with_config_files(self, files: Iterable[Path]) -> "Settings":
        """Return the same settings, knowing the configuration files that they were read from."""
        self._config_files = tuple(files)
        return self

    @property
    def config_files(self) -> Sequence[Path]:
        """Return the configuration files that the settings were read from."""
        return self._config_files

    @property
    def other_sections(self) -> Collection[str]:
        """Return the names of the sections of other packages that are set."""
        return self._extra.keys()

    @property
    def data_folder(self) -> Path:
        """Return the folder for everything the server stores; never the working directory of the caller."""
        return self.data_dir or Path(platformdirs.user_data_dir("bedstone", appauthor=False))

    def secrets(self) -> list[str]:
        """Return the secret values that the settings contain."""
        values = (value for section in self._sections() for _, value in section)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]

    def _sections(self) -> list[Section]:
        return [*(value for _, value in self if isinstance(value, Section)), *self._extra.values()]

    @property
    def access_token(self) -> str | None:
        """Return the bearer token, given directly or in its file."""
        token, file = self.mcp.token, self.mcp.token_file
        if token is not None:
            return check_token(token.get_secret_value(), "The token in mcp.token")
        return None if file is None else read_token_file(file)

    @property
    def signing_secret(self) -> str | None:
        """Return the secret that signs logins, forms and cursors, if one is given, directly or in its file."""
        secret, file = self.mcp.secret, self.mcp.secret_file
        if secret is not None:
            return check_token(secret.get_secret_value(), "The secret in mcp.secret")
        return None if file is None else read_token_file(file, "secret")

    @property
    def has_shared_store(self) -> bool:
        """Return whether servers on several machines can share the store of added files."""
        return (self.storage.database or "").startswith(SHARED_STORES)

    @property
    def is_stateless(self) -> bool:
        """Return whether handshake-era clients are served without sessions."""
        return self.has_shared_store if self.mcp.stateless is None else self.mcp.stateless
