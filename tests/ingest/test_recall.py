"""No line of 200 pages is lost: it is in the text, or reported as left out."""

from pathlib import Path

import pytest

from bedstone.ingest.reader import read_whole
from support.corpus import CorpusFile, corpus, plain

MIN_RECALL = 0.999


@pytest.fixture(scope="module")
def files() -> list[CorpusFile]:
    return corpus()


def test_the_corpus_has_200_pages(files: list[CorpusFile]) -> None:
    assert sum(len(file.pages) for file in files) >= 200


def test_every_line_is_in_the_text_or_reported(files: list[CorpusFile], tmp_path: Path) -> None:
    lost, total = [], 0
    for file in files:
        pages, notes = read_whole(file.write(tmp_path))
        whole = plain("\n".join(page.markdown for page in pages))
        reported = plain(" ".join(item.text for item in notes.left_out.items))
        for page in file.pages:
            total += len(page.lines) + len(page.repeated)
            lost += [(file.name, line) for line in page.lines if plain(line) not in whole]
            lost += [(file.name, line) for line in page.repeated if plain(line) not in whole + reported]
    assert 1 - len(lost) / total >= MIN_RECALL, lost[:20]


def test_numbers_dates_totals_and_headings_stay_on_their_page(files: list[CorpusFile], tmp_path: Path) -> None:
    for file in files:
        pages, _ = read_whole(file.write(tmp_path))
        read_pages = [plain(page.markdown) for page in pages]
        assert len(read_pages) == len(file.pages)
        for page, text in zip(file.pages, read_pages, strict=True):
            assert [line for line in page.lines if plain(line) not in text] == [], file.name
