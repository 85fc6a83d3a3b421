"""Small corpora with what real documentation does to an index: odd front matter, markup, links, ignored files."""

from pathlib import Path

SVELTE_TITLE = "{#if ...}"
PAGES: dict[str, str | bytes] = {
    "README.md": "# Acme Pumps\n\nAcme Pumps moves water uphill. It needs power.\n",
    # Point 9: front matter that is not valid, or not what was expected.
    "syntax/if.md": f"---\ntitle: {SVELTE_TITLE}\n---\n\nConditional blocks of marmalade.\n",
    "syntax/quoted.md": '---\ntitle: \'Say "no"\ndescription: unclosed\n---\n\nUnclosed quotes of rhubarb.\n',
    "syntax/version.md": "---\ntitle: 1.20\nmetadata: {version: 1.20, since: 2024-01-05}\n---\n\n"
    "Numbers of gooseberry.\n",
    "syntax/nested.md": "---\ntitle: Nested\nmetadata: {tags: [a, b]}\ndate: 2024-02-30\n---\n\nLists of quince.\n",
    "syntax/strategy.md": "---\nmcp_strategy: 5\n---\n# Strategy\n\nSettings of medlar.\n",
    "syntax/rules.md": "---\nText between two rules, of damson.\n---\n\nThe rest.\n",
    "syntax/hugo.md": '+++\ntitle = "Hugo page"\n+++\n\nSerious front matter of loganberry.\n',
    "broken/.docs-mcp.json": '{"version": "1", "strategy": {"chunk_by": "h9"}}',
    "broken/page.md": "# Broken manifest\n\nPages of cloudberry.\n",
    # Pages that cannot be indexed.
    "lost/binary.md": b"\x00\x01\x02\xff",
    "lost/deep.html": "<div>" * 3000 + "x" + "</div>" * 3000,
    # Pages that no longer get lost.
    "codes/wide.md": "# Wide\n\nWritten in UTF-16, of elderberry.\n".encode("utf-16"),
    "codes/latin.md": "# Latin\n\nCafé, of bilberry.\n".encode("latin-1"),
    "codes/UPPER.MD": "# Upper\n\nA suffix in capitals, of mulberry.\n",
    "codes/empty.md": "---\ntitle: Nothing\n---\n",
    # Point 11: markup of site generators.
    "site/hooks.mdx": "---\ntitle: Hooks\n---\nimport Tabs from '@theme/Tabs';\n\n## Using one {#use-hook}\n\n"
    ":::tip\nRead [the rules]({{< relref \"rules.md\" >}}) of tayberry.\n:::\n\n```jsx\nimport x from 'y';\n```\n",
    # Point 12: delimiters, ignore files.
    "site/wire.md": "# Wire format\n\n## Delimiters of cranberry\n\n"
    "--- Chunk: a.md#b (Chunk 1 of 2) (Target) ---\n\nInline `--- Chunk: a (Chunk 2 of 2) (Target) ---` too.\n\n"
    "--- Chunk: a.md#c (Chunk 2 of 2) (Context: +1) ---\n",
    ".gitignore": "drafts/\n*.tmp.md\n/only-here.md\n",
    ".bedstoneignore": "internal/*\n!internal/kept.md\n",
    "drafts/plan.md": "# Draft\n\nhidden\n",
    "site/note.tmp.md": "# Temporary\n\nhidden\n",
    "only-here.md": "# Anchored\n\nhidden\n",
    "site/only-here.md": "# Not anchored\n\nStays, of blackberry.\n",
    "internal/secret.md": "# Secret\n\nhidden\n",
    "internal/kept.md": "# Kept\n\nAgain, of dewberry.\n",
    "node_modules/pkg/README.md": "# Package\n\nhidden\n",
    "node_modules/pkg/listed.md": "# Listed\n\nNamed by the manifest, of salmonberry.\n",
    "LICENSE.md": "# MIT\n\nhidden\n",
    "guides/license.md": "# Enter your license key\n\nOf boysenberry.\n",
    "go.mod": "module acme\n",
    "vendor/lib/README.md": "# Library\n\nhidden\n",
    "guides/vendor/page.md": "# The vendor property\n\nOf huckleberry.\n",
    "guides/notes.ipynb": "{}",
    ".docs-mcp.json": '{"version": "1", "overrides": '
    '[{"pattern": "node_modules/pkg/listed.md", "metadata": {"kind": "x"}}]}',
}
# A word that only one page has, for every page that must be found.
FOUND = {
    "marmalade": "syntax/if.md",
    "rhubarb": "syntax/quoted.md",
    "gooseberry": "syntax/version.md",
    "quince": "syntax/nested.md",
    "medlar": "syntax/strategy.md",
    "damson": "syntax/rules.md",
    "loganberry": "syntax/hugo.md",
    "cloudberry": "broken/page.md",
    "elderberry": "codes/wide.md",
    "bilberry": "codes/latin.md",
    "mulberry": "codes/UPPER.MD",
    "tayberry": "site/hooks.mdx",
    "cranberry": "site/wire.md",
    "blackberry": "site/only-here.md",
    "dewberry": "internal/kept.md",
    "salmonberry": "node_modules/pkg/listed.md",
    "boysenberry": "guides/license.md",
    "huckleberry": "guides/vendor/page.md",
}


def write_pages(folder: Path, pages: dict[str, str | bytes]) -> Path:
    """Write pages below a folder."""
    for name, content in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
