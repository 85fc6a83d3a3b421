"""Every setting: its name, default and one line of help; and where each value came from."""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from bedstone.errors import InvalidSetting

CONFIG_NAME = "bedstone.toml"
DATA_NAME = ".bedstone"
ONE_OF = {"mcp.token": "mcp.token_file", "mcp.token_file": "mcp.token"}
PREFIX = "BEDSTONE_"
CONFIG_VARIABLE = "BEDSTONE_CONFIG"


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value if value is None else [value]


Names = Annotated[list[str], BeforeValidator(_split)]
Paths = Annotated[list[Path], BeforeValidator(_listed)]


class Section(BaseModel):
    # Built when first used, as a whole: each section on its own would cost milliseconds at every start.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LogSettings(Section):
    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        "info", description="Least important line to log"
    )
    format: Literal["text", "json"] = Field("text", description="Log lines for people, or as JSON")


class McpSettings(Section):
    transport: Literal["stdio", "http", "sse", "ws", "all"] = Field(
        "stdio", description="How clients connect; http serves every network transport, all adds stdio"
    )
    host: str = Field("127.0.0.1", description="Address to listen on; any but loopback needs a token")
    port: int = Field(3000, description="Port to listen on", ge=1, le=65535)
    token: SecretStr | None = Field(
        None, description="Bearer token every request must show; better in a file", min_length=1
    )
    token_file: Path | None = Field(None, description="File that holds the bearer token")
    allowed_hosts: Names = Field([], description="Further host names clients may use; * allows any")
    json_response: bool = Field(
        False, description="Answer handshake-era HTTP with plain JSON: carries large answers, but no progress"
    )


class KbSettings(Section):
    file_path: Path | None = Field(None, description="Text file that the kb tools serve whole")
    description: str = Field("Team knowledge base", description="What get_kb_info says the text is about")
    reload: Literal["on-change", "never"] = Field("on-change", description="When to read the file again")


class DocsSettings(Section):
    index: Paths = Field([], description="Index folder made by `bedstone docs build`; several make several corpora")
    dir: Paths = Field([], description="Documents to index at start and serve; several make several corpora")
    watch: bool = Field(False, description="Index documents again whenever they change")
    tool_prefix: str | None = Field(None, description="Put before the names of the docs tools: PREFIX_search_docs")
    phrase_slop: int = Field(0, ge=0, le=5, description="How many places the words of a phrase may be off")
    proximity_weight: float = Field(1.25, ge=0, le=10, description="How much it counts that words stand together")
    vector_weight: float = Field(1.0, ge=0, le=10, description="How much meaning counts beside words")


class StorageSettings(Section):
    documents_path: Path | None = Field(None, description="Copies of added files; `documents` in the data folder")
    vector_db_path: Path | None = Field(None, description="Store and indexes of added files; `index` there")
    allowed_roots: Paths = Field([], description="Folders that knowledge-add may read from; any, if none is named")
    model_cache_path: Path | None = Field(None, description="Folder for vectors that were computed before")
    watch: Paths = Field([], description="Folders whose files are kept in step with the knowledge base")


class ChunkingSettings(Section):
    chunk_size: int = Field(500, ge=100, le=10_000, description="Characters of a chunk at most")
    chunk_overlap: int = Field(50, ge=0, description="Characters that neighbouring chunks share, in whole sentences")
    strategy: Literal["sentence", "paragraph", "fixed"] = Field("sentence", description="Where long text is cut")


class ProcessingSettings(Section):
    max_concurrent_tasks: int = Field(3, ge=1, le=64, description="Files that are read at a time")
    max_file_size_mb: int = Field(100, ge=1, description="Largest file that may be added")


class OcrSettings(Section):
    enabled: bool = Field(True, description="Recognise text in pictures and scans")
    language: str = Field("eng", description="What scans are written in, as tesseract calls it")
    data_path: Path | None = Field(None, description="Folder with language data of tesseract; English comes along")
    images: Literal["none", "pdf", "all"] = Field(
        "pdf", description="Recognise text in pictures on pages that have text: of PDF, of Word and PowerPoint too"
    )
    force_ocr: bool = Field(False, description="Read every page as a picture")
    confidence_threshold: float = Field(0.0, ge=0, le=1, description="Recognised text below this is left out")


class SearchSettings(Section):
    default_top_k: int = Field(10, ge=1, description="Results of knowledge-search unless the caller says how many")
    max_top_k: int = Field(50, ge=1, le=1_000, description="Most results of knowledge-search")


class EmbeddingSettings(Section):
    provider: Literal["minilm", "openai", "hash", "none"] = Field(
        "minilm", description="Where vectors come from; openai is any service that speaks its protocol"
    )
    model_name: str | None = Field(None, description="Model of the service; `none` switches vectors off")
    dimensions: int | None = Field(None, ge=1, description="Length of its vectors, where it offers a choice")
    api_key: SecretStr | None = Field(None, description="Key of the service; OPENAI_API_KEY counts too")
    base_url: str | None = Field(None, description="Address of the service")
    batch_size: int = Field(128, ge=1, description="Texts in a request")
    concurrency: int = Field(4, ge=1, le=64, description="Requests at a time")
    max_retries: int = Field(3, ge=0, le=20, description="How often a busy service is asked again")


class SalesforceSettings(Section):
    org: str | None = Field(None, description="Org that is asked; the only one that is known by default")
    demo_port: int | None = Field(None, ge=1, le=65535, description="Port of a demo org that runs beside the server")
    article_source: Literal["live", "mirror", "live-or-mirror"] = Field(
        "live-or-mirror", description="Where articles come from; the mirror also answers while the org cannot"
    )
    article_body_fields: Names = Field(
        [], description="Fields that make an article's text; found by themselves if none"
    )
    warn_share: float = Field(
        0.8, ge=0, le=1, description="Share of the day's calls from which answers carry a warning"
    )
    call_floor: int = Field(0, ge=0, description="Calls of the day that are kept back: fewer left is an error")
    more_tools: Names = Field(
        [], description="Further tools of salesforce_graph to list, by name; `all` lists every one"
    )
    categories: dict[str, str] = Field({}, description="Categories of objects that the rules get wrong, by object name")
    sync_names: bool = Field(True, description="Take names of companies with a schema, to tell them from fields")
    sync_minutes: int = Field(0, ge=0, description="Minutes between syncs by the server; 0 leaves them to the command")


class Settings(Section):
    """The settings tree."""

    toolsets: Names | None = Field(None, description="Toolsets to serve, by commas; all that are configured by default")
    name: str | None = Field(None, description="Server name that clients see instead of the default one")
    data_dir: Path | None = Field(None, description="Folder for everything the server keeps")
    read_only: bool = Field(False, description="Refuse every call that would change something")
    log: LogSettings = Field(default_factory=LogSettings)
    mcp: McpSettings = Field(default_factory=McpSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    chunking: ChunkingSettings = Field(default_factory=ChunkingSettings)
    processing: ProcessingSettings = Field(default_factory=ProcessingSettings)
    ocr: OcrSettings = Field(default_factory=OcrSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    docs: DocsSettings = Field(default_factory=DocsSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    kb: KbSettings = Field(default_factory=KbSettings)
    salesforce: SalesforceSettings = Field(default_factory=SalesforceSettings)

    @property
    def data_folder(self) -> Path:
        """Where everything is kept: never the working folder of whoever starts us."""
        return self.data_dir or Path(platformdirs.user_data_dir("bedstone", appauthor=False))

    @property
    def access_token(self) -> str | None:
        """The token, given directly or in its file."""
        if self.mcp.token is not None:
            return self.mcp.token.get_secret_value()
        if self.mcp.token_file is None:
            return None
        try:
            token = self.mcp.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSetting(f"Cannot read the token file {self.mcp.token_file}: {error}") from error
        if not token:
            raise InvalidSetting(f"The token file {self.mcp.token_file} is empty.")
        if len(token.split()) > 1:
            raise InvalidSetting(
                f"The token file {self.mcp.token_file} must hold one word: the token and nothing else."
            )
        return token


@dataclass(frozen=True)
class Configuration:
    """The settings in force, for each that was set what set it, and what looks like a slip of the pen."""

    settings: Settings
    sources: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class _Layer:
    """Values by dotted key from one place; `folder` is what its relative paths start from."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    folder: Path


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """Settings from flags, environment, a local and a user's configuration file, in this order of strength."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    local = config or _path(environ.get(CONFIG_VARIABLE)) or local_config()
    for layer in reversed(list(_layers(flags or {}, local, environ))):
        for key, value in layer.values.items():
            values[key] = _resolved(key, value, layer.folder)
            sources[key] = layer.sources[key]
            if key in ONE_OF:  # the stronger source has the last word
                values.pop(ONE_OF[key], None)
    if local:
        values.setdefault("data_dir", local.resolve().parent / DATA_NAME)
    try:
        return Configuration(Settings.model_validate(_nested(values)), sources, list(_strange_variables(environ)))
    except ValidationError as error:
        raise InvalidSetting(_explain(error, sources)) from None


def local_config() -> Path | None:
    """The configuration file of the working folder."""
    path = Path.cwd() / CONFIG_NAME
    return path if path.is_file() else None


def setting_fields(section: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its dotted key."""
    for name, info in section.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            yield from setting_fields(info.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", info


def environment_name(key: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + key.replace(".", "__").upper()


def _strange_variables(environ: Mapping[str, str]) -> Iterator[str]:
    known = [CONFIG_VARIABLE, *(environment_name(key) for key, _ in setting_fields())]
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1)
            yield f"The variable {name} is no setting." + (f" Did you mean {near[0]}?" if near else "")


def _layers(flags: Mapping[str, Any], local: Path | None, environ: Mapping[str, str]) -> Iterator[_Layer]:
    here = Path.cwd()
    yield _Layer(flags, dict.fromkeys(flags, "flag"), here)
    variables = {key: environment_name(key) for key, _ in setting_fields() if environ.get(environment_name(key))}
    yield _Layer({key: environ[name] for key, name in variables.items()}, variables, here)
    if local:
        yield _file_layer(local.resolve())
    user = Path(platformdirs.user_config_dir("bedstone", appauthor=False)) / CONFIG_NAME
    if user.is_file():
        yield _file_layer(user)


def _file_layer(path: Path) -> _Layer:
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"Cannot read the configuration file {path}: {error}") from error
    values = dict(_flat(tree))
    return _Layer(values, dict.fromkeys(values, str(path)), path.parent)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        node = tree
        for section in sections:
            inner = node.setdefault(section, {})
            if not isinstance(inner, dict):
                raise InvalidSetting(
                    f"{section} is a section of settings, not a value: write [{section}] above its settings."
                )
            node = inner
        node[name] = value
    return tree


def _resolved(key: str, value: Any, folder: Path) -> Any:
    """A path from where it was written; everything else as it is."""
    info = dict(setting_fields()).get(key)
    if info is not None and info.annotation == list[Path] and value is not None:
        return [_resolved_path(item, folder) for item in _listed(value)]
    if info is not None and info.annotation == (Path | None):
        return _resolved_path(value, folder)
    return value


def _resolved_path(value: Any, folder: Path) -> Any:
    return Path(os.path.normpath(folder / _expanded(value))) if isinstance(value, str | Path) else value


def _expanded(value: str | Path) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # nobody has that name
        raise InvalidSetting(f"Cannot find the home folder in {str(value)!r}.") from error


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    known = [key for key, _ in setting_fields()]
    key = ".".join(str(part) for part in problem["loc"])
    source = next((sources[name] for name in sources if name == key or name.startswith(f"{key}.")), "the settings")
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(key, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else " `bedstone settings` lists all of them."
        return f"Unknown setting {key} (from {source}).{guess}"
    return f"Invalid value for {key} (from {source}): {problem['msg']}"
