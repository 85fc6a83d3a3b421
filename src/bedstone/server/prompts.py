"""prompts/list, prompts/get, completion/complete."""

from collections.abc import Sequence

import mcp_types as wire
from mcp.shared.exceptions import MCPError

from bedstone.errors import UnknownPrompt
from bedstone.server.context import Context
from bedstone.server.paging import page
from bedstone.server.wire import content_block
from bedstone.toolkit import Prompt, Toolset

MAX_COMPLETIONS = 100  # the protocol's limit


class Prompts:
    """The prompts of several toolsets in one list."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._toolsets = toolsets

    async def list(self, _: Context, params: wire.PaginatedRequestParams | None) -> wire.ListPromptsResult:
        """Answer prompts/list."""
        all_prompts = [prompt for toolset in self._toolsets for prompt in toolset.prompts()]
        prompts, next_cursor = page(all_prompts, params.cursor if params else None)
        return wire.ListPromptsResult(prompts=[_prompt(prompt) for prompt in prompts], next_cursor=next_cursor)

    async def get(self, _: Context, params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
        """Answer prompts/get."""
        problem = ""
        for toolset in self._toolsets:
            try:
                messages = await toolset.get_prompt(params.name, params.arguments or {})
            except UnknownPrompt as error:
                problem = error.message
                continue
            return wire.GetPromptResult(
                messages=[wire.PromptMessage(role=item.role, content=content_block(item.content)) for item in messages]
            )
        message = problem if len(self._toolsets) == 1 else f"Prompt '{params.name}' not found"
        raise MCPError(wire.INVALID_PARAMS, message)

    async def complete(self, _: Context, params: wire.CompleteRequestParams) -> wire.CompleteResult:
        """Answer completion/complete."""
        subject = params.ref.name if isinstance(params.ref, wire.PromptReference) else params.ref.uri
        values = [
            value
            for toolset in self._toolsets
            for value in await toolset.complete(subject, params.argument.name, params.argument.value)
        ]
        more = len(values) > MAX_COMPLETIONS
        completion = wire.Completion(values=values[:MAX_COMPLETIONS], total=len(values), has_more=more)
        return wire.CompleteResult(completion=completion)


def _prompt(prompt: Prompt) -> wire.Prompt:
    arguments = [
        wire.PromptArgument(name=item.name, title=item.title, description=item.description, required=item.required)
        for item in prompt.arguments
    ]
    return wire.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments)
