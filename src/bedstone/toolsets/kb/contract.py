"""What the kb tools answer, as the contract prints it."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from bedstone.toolkit import Result


class KbFacts(Result):
    file_size_bytes: int = Field(alias="fileSizeBytes", description="Size of the file in bytes")
    content_length: int = Field(alias="contentLength", description="Length of the text in characters")
    is_available: bool = Field(alias="isAvailable", description="Whether the text can be read")
    description: str = Field(description="What the knowledge base is about")
    last_modified: datetime | None = Field(
        alias="lastModified", description="When the file last changed, UTC; null if there is no file"
    )


class KbInfo(Result):
    status: Literal["available", "unavailable"]
    info: KbFacts


class KbContent(Result):
    status: Literal["ok", "empty"]
    content_length: int = Field(alias="contentLength", description="Length of the text in characters")
    content: str = Field(description="The whole text, unmodified")
