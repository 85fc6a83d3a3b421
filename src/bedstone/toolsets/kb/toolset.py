"""The kb toolset: metadata first, the whole text on demand."""

from bedstone.errors import BedstoneError
from bedstone.services.service import Handle
from bedstone.services.text_file import KbUnreadable, TextFile
from bedstone.toolkit import NoArguments, Reply, Toolset, ToolsetContext, tool
from bedstone.toolsets.kb.contract import KbContent, KbFacts, KbInfo


class KbToolset(Toolset):
    """Serves one text file whole."""

    label = "kb"
    title = "Knowledge base file"
    server_name = "kb"
    instructions = (
        "One knowledge base text: get_kb_info tells its size and whether it can be read, "
        "get_kb_content gives all of it."
    )

    def __init__(self, file: Handle[TextFile], *, description: str, read_only: bool = False) -> None:
        super().__init__(file, read_only=read_only)
        self._file = file
        self._description = description

    @classmethod
    def build(cls, context: ToolsetContext) -> "KbToolset":
        """Serve the configured file."""
        assert context.service is not None
        context.service.get()  # a file that cannot be read is reported at the start
        return cls(context.service, description=context.settings.kb.description, read_only=context.read_only)

    @tool(
        "get_kb_info",
        "Retrieve basic knowledge base information and statistics: size, length, availability, last change.",
        title="Knowledge base info",
    )
    async def info(self, _: NoArguments) -> KbInfo:
        """Facts about the file; an unreadable one is an answer, not a failure."""
        file = await self._file.get().read()
        readable = file.problem is None
        facts = KbFacts(
            file_size_bytes=file.size_bytes,
            content_length=len(file.text),
            is_available=readable,
            description=self._description,
            last_modified=file.modified.replace(microsecond=0) if file.modified else None,
        )
        return KbInfo(status="available" if readable else "unavailable", info=facts)

    @tool(
        "get_kb_content",
        "Retrieve the full raw knowledge base text content. It is never truncated: look at get_kb_info first.",
        title="Knowledge base content",
        large=True,
    )
    async def content(self, _: NoArguments) -> KbContent:
        """The whole text."""
        file = await self._file.get().read()
        if file.problem is not None:
            raise KbUnreadable(file.problem)
        return KbContent(status="ok" if file.text else "empty", content_length=len(file.text), content=file.text)

    def render_error(self, error: BedstoneError) -> Reply:
        """The contract knows one error shape."""
        return Reply({"status": "error", "error": error.message}, is_error=True)
