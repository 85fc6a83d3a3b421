"""A small documentation corpus, and queries whose best hit has a clear margin."""

import json
from pathlib import Path

from bedstone.search.embedder import Embedder
from bedstone.services.docs.builder import BuildOptions, DocsBuilder

FILES = {
    ".docs-mcp.json": json.dumps(
        {
            "version": "1",
            "metadata": {"scope": "global-guide"},
            "taxonomy": {
                "language": {"vector_collapse": True, "description": "The language of the SDK."},
                "scope": {"properties": {"global-guide": {"mcp_resource": True}}},
            },
            "mcpServerInstructions": "Prefer guides.",
            "overrides": [
                {"pattern": "sdk/go/**", "metadata": {"language": "go", "scope": "sdk-specific"}},
                {"pattern": "sdk/python/**", "metadata": {"language": "python", "scope": "sdk-specific"}},
            ],
        }
    ),
    "guides/retries.md": "# Retries\nHow to configure retries.\n\n## Backoff Strategy\n"
    "The SDK waits *longer* each time.\n\n## Jitter\nRandom delays prevent thundering herds.\n",
    "guides/billing notes.md": "---\ntitle: Billing\n---\nInvoices are sent monthly.\n\n## Refunds\n"
    "Money comes back in ten days.\n",
    "sdk/go/client.md": "# Client\n\n## NewClient\nCreates a client with `WithTimeout`.\n",
    "sdk/python/client.md": "# Client\n\n## NewClient\nCreates a client with a timeout argument.\n",
    "guides/ask.template.md": "---\ntitle: Ask\ndescription: Asks.\narguments:\n  - name: topic\n    required: true\n"
    "  - name: tone\n---\nTell me about {{topic}} & {{{ tone }}}.\n",
    "guides/talk.template.yaml": "messages:\n  - role: user\n    text: Hello {{name}}\n  - role: assistant\n"
    "    text: Hi\narguments: [{name: name}]\n",
    "sdk/python/errors.md": "# Errors\n\n## RateLimitError\nRaised when the limit is exceeded.\n",
}
WAITING = "how long does it wait between attempts"
REIMBURSED = "how soon am I reimbursed"
NONSENSE = "xyzzyqwe plugh"
MISSPELLED = "jittre"
# The first hit of each query, or None where nothing is near enough.
BEST_HITS: dict[str, str | None] = {
    WAITING: "guides/retries.md#retries/backoff-strategy",
    REIMBURSED: "guides/billing notes.md#refunds",
    NONSENSE: None,
    MISSPELLED: None,
}


def build_sample_docs(root: Path, embedder: Embedder | None) -> Path:
    """Write the files and return their index."""
    for name, text in FILES.items():
        file = root / "source" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    options = BuildOptions(description="Acme documentation")
    DocsBuilder(root / "source", root / "index", embedder, options, lambda *_: None).build()
    return root / "index"
