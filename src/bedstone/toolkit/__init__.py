"""Tools, resources and prompts, independent of the protocol."""

from bedstone.toolkit.citation import Citation
from bedstone.toolkit.content import Audio, Content, Embedded, Image, Text
from bedstone.toolkit.links import Links
from bedstone.toolkit.models import Arguments, NoArguments, Result
from bedstone.toolkit.prompt import Prompt, PromptArgument, PromptMessage
from bedstone.toolkit.reply import Reply
from bedstone.toolkit.resource import Resource, ResourceContents, ResourceTemplate
from bedstone.toolkit.spec import NavigationItem, ToolsetContext, ToolsetSpec
from bedstone.toolkit.task import Progress, TaskView
from bedstone.toolkit.tool import Tool, tool
from bedstone.toolkit.toolset import Toolset

__all__ = [
    "Arguments",
    "Audio",
    "Citation",
    "Content",
    "Embedded",
    "Image",
    "Links",
    "NavigationItem",
    "NoArguments",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "Reply",
    "Resource",
    "ResourceContents",
    "ResourceTemplate",
    "Result",
    "TaskView",
    "Text",
    "Tool",
    "Toolset",
    "ToolsetContext",
    "ToolsetSpec",
    "tool",
]
