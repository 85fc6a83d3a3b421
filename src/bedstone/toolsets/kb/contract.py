"""Results of the kb tools, as in the contract."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from bedstone.toolkit import Result


class KbFacts(Result):
    file_size_bytes: int = Field(alias="fileSizeBytes", description="Size of the file in bytes")
    content_length: int = Field(alias="contentLength", description="Length of the text in characters")
    is_available: bool = Field(alias="isAvailable", description="Whether the text can be read")
    description: str = Field(description="Description of the knowledge base")
    last_modified: datetime | None = Field(
        alias="lastModified", description="Time of the last change, UTC; null if the file does not exist"
    )


class KbInfo(Result):
    status: Literal["available", "unavailable"]
    info: KbFacts


class KbContent(Result):
    status: Literal["ok", "empty"]
    content_length: int = Field(alias="contentLength", description="Length of the text in characters")
    content: str = Field(description="The full text, unmodified")
