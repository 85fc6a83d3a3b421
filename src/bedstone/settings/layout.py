"""Where everything is stored: each path below the data folder."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

import platformdirs

from bedstone.settings.sections import Settings

UPLOADS = "uploads"  # in the data folder
USER = re.compile(r"//.*@")  # in an address, with the password


def knowledge_index(settings: Settings) -> Path:
    """Return the folder with the store and the indexes of added files."""
    return settings.storage.vector_db_path or settings.data_folder / "index"


def knowledge_store(settings: Settings) -> str:
    """Return where the store of added files is, for messages: an address without user and password, or a folder."""
    address = settings.storage.database
    if not address:
        return str(knowledge_index(settings))
    place, _, query = address.partition("?")
    schema = dict(parse_qsl(query)).get("schema")
    return USER.sub("//", place) + (f"?schema={schema}" if schema else "")


def knowledge_documents(settings: Settings) -> Path:
    """Return the folder with the copies of added files."""
    return settings.storage.documents_path or settings.data_folder / "documents"


def knowledge_copies(settings: Settings) -> Path:
    """Return the folder with what this machine has of copies that are elsewhere."""
    return knowledge_index(settings) / "blobs"


def uploads(settings: Settings) -> Path:
    """Return the folder that files uploaded through the page pass through."""
    return settings.data_folder / UPLOADS


def docs_indexes(settings: Settings) -> Path:
    """Return the folder with the indexes that `bedstone docs build` writes."""
    return settings.data_folder / "docs"


def configured_docs_indexes(settings: Settings) -> list[Path]:
    """Return the docs indexes that are configured, or those in the data folder."""
    if settings.docs.index or settings.docs.dir or settings.docs.published:
        return settings.docs.index
    return [path.parent for path in sorted(docs_indexes(settings).glob("*/metadata.json"))]


def served_docs_indexes(settings: Settings) -> Path:
    """Return the folder with the indexes of documentation folders that are served directly."""
    return settings.data_folder / "served"


def published_docs_indexes(settings: Settings) -> Path:
    """Return the folder with the copies of published indexes."""
    return settings.data_folder / "published"


def salesforce(settings: Settings) -> Path:
    """Return the folder with orgs, schemas and article mirrors."""
    return settings.data_folder / "salesforce"


def page_sessions(settings: Settings) -> Path:
    """Return the file with the secret of page sessions and those that were logged out."""
    return settings.data_folder / "sessions.json"


def embedding_cache(settings: Settings) -> Path:
    """Return the file that caches embeddings."""
    default = Path(platformdirs.user_cache_dir("bedstone", appauthor=False))
    return (settings.storage.model_cache_path or default) / "embeddings.sqlite"
