"""Read e-mail messages: headers, text, and the names of attachments."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.left_out import missing_lines
from bedstone.ingest.markdown_writer import heading, join_blocks

if TYPE_CHECKING:
    from email.message import EmailMessage, MIMEPart

FORMAT = Format(name="eml", reader=f"{__name__}:read", suffixes=(".eml",), media_type="message/rfc822")
INLINE_TEXTS = ("plain", "html", "calendar")
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
    body, other = message.get_body(("plain", "html")), message.get_body(("html",))
    attachments = [part for part in message.iter_attachments() if not _is_inline_text(part)]
    texts = [_body(body, other, notes)] if body is not None else []
    for part in _leaves(message, [body, other, *attachments]):
        if _is_inline_text(part):
            texts.append(_content(part, notes))
        else:
            is_picture = part.get_content_maintype() == "image"
            notes.leave_out("picture" if is_picture else "attachment", _name(part))
    for part in attachments:
        notes.leave_out("attachment", _name(part))
    attached = "Attachments:\n" + "\n".join(f"- {_name(part)}" for part in attachments) if attachments else ""
    yield Page(join_blocks([heading(1, subject), "\n".join(head), *texts, attached]))


def _leaves(part: "MIMEPart", known: "Sequence[MIMEPart | None]") -> "Iterator[MIMEPart]":
    """Yield the parts that have no parts, and are not known yet."""
    if any(part is item for item in known):
        return
    if part.get_content_maintype() == "multipart":
        for inner in part.iter_parts():
            yield from _leaves(inner, known)
    else:
        yield part


def _is_inline_text(part: "MIMEPart") -> bool:
    """Return whether a part belongs to the text of the message: mail programs split it around pictures."""
    is_text = part.get_content_maintype() == "text" and part.get_content_subtype() in INLINE_TEXTS
    return is_text and not part.get_filename() and not part.is_attachment()


def _name(part: "MIMEPart") -> str:
    return part.get_filename() or part.get_content_type()


def _body(part: "MIMEPart", other: "MIMEPart | None", notes: Notes) -> str:
    """Return the text of the message; lines that only its other version has are noted."""
    text = _content(part, notes)
    if other is not None and other is not part:
        for line in missing_lines(_content(other, notes).splitlines(), text):
            notes.leave_out("other version", line)
    return text


def _content(part: "MIMEPart", notes: Notes) -> str:
    try:
        content = part.get_content()
    except (LookupError, UnicodeDecodeError, KeyError):
        payload = part.get_payload(decode=True)
        content = payload.decode("utf-8", errors="replace") if isinstance(payload, bytes) else ""
        notes.warn("Unknown encoding; the message was decoded as UTF-8")
    if part.get_content_subtype() == "html":
        return html_to_markdown(str(content).encode(), notes=notes)[1]
    return str(content)
