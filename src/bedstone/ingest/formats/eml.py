"""Read e-mail messages: headers, text, and the names of attachments."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.markdown_writer import heading, join_blocks

if TYPE_CHECKING:
    from email.message import EmailMessage

FORMAT = Format(name="eml", reader=f"{__name__}:read", suffixes=(".eml",), media_type="message/rfc822")
HEADERS = ("From", "To", "Cc", "Date")


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page with the message."""
    import email.policy  # noqa: PLC0415 - only the worker process needs it

    message: EmailMessage = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    subject = str(message.get("Subject") or "")
    notes.learn("title", subject)
    notes.learn("author", message.get("From"))
    notes.learn("created", message.get("Date"))
    head = [f"{name}: {message[name]}" for name in HEADERS if message.get(name)]
    attachments = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    attached = "Attachments:\n" + "\n".join(f"- {name}" for name in attachments) if attachments else ""
    yield Page(join_blocks([heading(1, subject), "\n".join(head), _body(message, notes), attached]))


def _body(message: "EmailMessage", notes: Notes) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    try:
        content = part.get_content()
    except (LookupError, UnicodeDecodeError, KeyError):
        payload = part.get_payload(decode=True)
        content = payload.decode("utf-8", errors="replace") if isinstance(payload, bytes) else ""
        notes.warn("Unknown encoding; the message was decoded as UTF-8")
    if part.get_content_subtype() == "html":
        return html_to_markdown(str(content).encode())[1]
    return str(content)
