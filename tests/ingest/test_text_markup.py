"""Text files: reStructuredText and Markdown are recognized by content, prose is left alone."""

import pytest

from bedstone.ingest.chunking.by_heading import Strategy, chunk_blocks
from bedstone.ingest.formats.rst import rst_blocks, rst_to_markdown
from bedstone.ingest.text_markup import detect_markup
from bedstone.records import Chunk


@pytest.mark.parametrize(
    "source",
    [
        "=====\nTitle\n=====\n\nSee :doc:`/intro`.\n",
        "Title\n=====\n\n.. note::\n\n   Mind this.\n",
        ".. _label:\n\nTitle\n-----\n\nText.\n",
        "Use ``pip`` as in :ref:`install <x>`.\n",
        "See `the site <https://example.com>`_.\r\n\r\nTitle\r\n-----\r\n\r\nText.\r\n",
        ".. class:: Pump(size)\n\n   A pump.\n\n   .. method:: start()\n\n      Starts :class:`Pump`.\n",
    ],
)
def test_restructured_text_is_recognized(source: str) -> None:
    assert detect_markup(source) == "rst"


@pytest.mark.parametrize(
    "source",
    [
        "# Title\n\n> Summary\n\n## Docs\n\n- [Page](https://example.com/page.md)\n",
        "# Title\n\nText.\n\n```python\nprint(1)\n```\n",
        "## Options\n\n| Name | Use |\n|------|-----|\n| a | b |\n",
        "Intro.\n\n### Part\n\nThis is **bold** text.\n",
    ],
)
def test_markdown_is_recognized(source: str) -> None:
    assert detect_markup(source) == "markdown"


@pytest.mark.parametrize(
    "source",
    [
        "Dear Anna,\n\nthe parts arrive on Monday... or Tuesday :-)\n\nBest\nBob\n",
        "MINUTES\n=======\n\nPresent: Anna, Bob\n\n1. Budget\n2. Dates\n\n* agreed *\n",
        "# a comment\n\nhost = example.com\n\n# another\n\nport = 80\n",
        "# requirements\nrequests==2.0\n# tests\npytest\n",
        "cmake_minimum_required(VERSION 3.1)\n# Build [all](targets)\nproject(x)\n",
        "# The grammar\n\n# Use `x` for **y** in it\n\nexpr: a ('+' b)*\n",
        "2024-01-01 12:00:00 INFO :: started\n2024-01-01 12:00:01 WARN ::: stopped ..\n",
        ".. and then he said:: nothing at all.\n\n.. note this\n",
        "Ratio 3:4, time 12:30:00, see [1] and (2).\n\n----\n\nThe end.\n",
        "name    size\n------  ----\nbolt    M6\nnut     M6\n",
        "In reStructuredText a note begins with two dots, the word note and two colons.\n",
        "Costs are $5 * 3 * 2 and a_b_c is a name; `x' is quoted like ``this''.\n",
        "",
    ],
)
def test_prose_stays_plain(source: str) -> None:
    assert detect_markup(source) == "text"


REFERENCE = """\
=========
The pumps
=========

.. module:: acme.pumps
   :synopsis: Pumps.

Every :term:`pump
<pumping>` has a [1]_ motor.

.. setting:: PUMP_SIZE

``PUMP_SIZE``
-------------

Default: ``3``

Classes
-------

.. class:: Pump(size, *, \\*args)
           Pump.of(other)

   A pump of some size.

   .. method:: Pump.start(force=False)

      Starts it.

      .. versionadded:: 2.1

         The argument ``force``.

   .. py:attribute:: Pump.size

      In litres.

``drain()``
~~~~~~~~~~~

.. method:: drain(*args)

Empties the pump:

>>> pump.drain()
3

Priming
~~~~~~~

Fill it first.

Commands
--------

.. option:: -v, --verbose

   Talk more.

.. envvar:: PUMP_HOME

   Where pumps live.

.. c:function:: int pump_start(struct pump *self, int force)

   Starts a pump in C.

.. [1] Or an engine.
"""


@pytest.fixture(scope="module")
def chunks() -> dict[str, Chunk]:
    markdown = rst_to_markdown(REFERENCE)
    _, found = chunk_blocks("p.txt", markdown, rst_blocks(markdown), Strategy(), title="", facets={})
    return {chunk.id.partition("#")[2]: chunk for chunk in found}


def test_entries_of_a_reference_are_chunks_of_their_own(chunks: dict[str, Chunk]) -> None:
    assert list(chunks) == [
        "_preamble",
        "the-pumps/pumpsize",
        "the-pumps/classes",
        "the-pumps/classes/class-pump",
        "the-pumps/classes/class-pump/pumpstart",
        "the-pumps/classes/class-pump/pumpsize",
        "the-pumps/classes/drain",
        "the-pumps/classes/priming",
        "the-pumps/commands",
        "the-pumps/commands/v-verbose",
        "the-pumps/commands/pumphome",
        "the-pumps/commands/pumpstart",
    ]
    start = chunks["the-pumps/classes/class-pump/pumpstart"]
    assert start.breadcrumb == ("The pumps", "Classes", "class Pump", "Pump.start()")
    assert "Pump.start(force=False)" in start.plain
    assert "New in version 2.1:" in start.plain
    pump = chunks["the-pumps/classes/class-pump"]
    assert "Pump(size, *, *args)\nPump.of(other)\nA pump of some size." in pump.plain
    assert chunks["the-pumps/commands/pumpstart"].heading == "pump_start()"


def test_an_entry_that_names_a_section_is_no_second_heading(chunks: dict[str, Chunk]) -> None:
    assert chunks["the-pumps/pumpsize"].heading == "PUMP_SIZE"
    assert chunks["the-pumps/pumpsize"].plain == "PUMP_SIZE\nDefault: 3"
    assert chunks["the-pumps/classes/drain"].plain.startswith("drain()\ndrain(*args)\nEmpties the pump:")
    assert chunks["the-pumps/classes/priming"].plain == "Priming\nFill it first."
    assert "acme.pumps" in chunks["_preamble"].plain


def test_roles_over_two_lines_and_footnotes_are_text(chunks: dict[str, Chunk]) -> None:
    assert "Every pump has a [1] motor." in chunks["_preamble"].plain
    assert chunks["the-pumps/commands/pumpstart"].plain.endswith("[1] Or an engine.")


def test_one_chunk_per_file_stays_one() -> None:
    markdown = rst_to_markdown(REFERENCE)
    _, found = chunk_blocks("p.txt", markdown, rst_blocks(markdown), Strategy("file"), title="", facets={})
    assert [chunk.id for chunk in found] == ["p.txt"]


def test_a_short_title_is_a_title() -> None:
    assert rst_to_markdown("if\n--\n\nText.\n").split() == ["#", "if", "Text."]
