"""E-mails: who, when, what about, the text, and the names of attachments."""

import email
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from pathlib import Path

from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.markdown_writer import heading, joined

HEADERS = ("From", "To", "Cc", "Date")


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """One message."""
    message = email.message_from_bytes(path.read_bytes(), policy=policy.default)
    assert isinstance(message, EmailMessage)
    subject = str(message.get("Subject") or "")
    notes.learn("title", subject)
    notes.learn("author", message.get("From"))
    notes.learn("created", message.get("Date"))
    head = [f"{name}: {message[name]}" for name in HEADERS if message.get(name)]
    attachments = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    listed = "Attachments:\n" + "\n".join(f"- {name}" for name in attachments) if attachments else ""
    yield Page(joined([heading(1, subject), "\n".join(head), _body(message, notes), listed]))


def _body(message: EmailMessage, notes: Notes) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    try:
        content = part.get_content()
    except (LookupError, UnicodeDecodeError, KeyError):
        payload = part.get_payload(decode=True)
        content = payload.decode("utf-8", errors="replace") if isinstance(payload, bytes) else ""
        notes.warn("The message names an unknown encoding; it was read as UTF-8")
    if part.get_content_subtype() == "html":
        return html_to_markdown(str(content).encode())[1]
    return str(content)
