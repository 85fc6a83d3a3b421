"""The kb toolset: facts about one text file, and its full text."""

from bedstone.errors import BedstoneError
from bedstone.services.service import Handle
from bedstone.services.text_file import TextFile
from bedstone.toolkit import NoArguments, Reply, Toolset, ToolsetContext, tool
from bedstone.toolsets.kb.contract import KbContent, KbFacts, KbInfo


class KbToolset(Toolset):
    """Serves one text file."""

    label = "kb"
    title = "Knowledge file"
    server_name = "kb"
    instructions = (
        "One knowledge base text: get_kb_info returns its size and availability, get_kb_content the full text."
    )

    def __init__(self, file: Handle[TextFile], *, description: str, read_only: bool = False) -> None:
        super().__init__(file, read_only=read_only)
        self._file = file
        self._description = description

    @classmethod
    def build(cls, context: ToolsetContext) -> "KbToolset":
        """Serve the configured file."""
        assert context.service is not None
        context.service.get()  # reports an unreadable file at startup
        return cls(context.service, description=context.settings.kb.description, read_only=context.read_only)

    @tool(
        "get_kb_info",
        "Retrieve basic knowledge base information and statistics: size, length, availability, last change.",
        title="Knowledge base info",
    )
    async def info(self, _: NoArguments) -> KbInfo:
        """Return facts about the file; an unreadable file is not an error."""
        file = await self._file.get().read()
        is_readable = file.problem is None
        facts = KbFacts(
            file_size_bytes=file.size_bytes,
            content_length=len(file.text),
            is_available=is_readable,
            description=self._description,
            last_modified=file.modified.replace(microsecond=0) if file.modified else None,
        )
        return KbInfo(status="available" if is_readable else "unavailable", info=facts)

    @tool(
        "get_kb_content",
        "Retrieve the full raw knowledge base text content. Never truncated: check the size with get_kb_info first.",
        title="Knowledge base content",
        large=True,
    )
    async def content(self, _: NoArguments) -> KbContent:
        """Return the full text."""
        file = await self._file.get().readable()
        return KbContent(status="ok" if file.text else "empty", content_length=len(file.text), content=file.text)

    def render_error(self, error: BedstoneError) -> Reply:
        """Render an error in the shape of this contract."""
        return Reply({"status": "error", "error": error.message}, is_error=True)
