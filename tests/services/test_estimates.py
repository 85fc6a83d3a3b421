"""How long files take, and how their progress follows: by format, pages and method."""

from pathlib import Path

import pytest

from bedstone.ingest.page_images import count_page_images
from bedstone.services.knowledge.estimates import (
    DEFAULTS,
    MAX_FACTOR,
    Bounds,
    Estimator,
    FileFacts,
    Speeds,
    Timeline,
    queue_seconds,
    reading_parts,
)
from bedstone.services.knowledge.reading import TaskReport
from bedstone.tasks import Progress
from ingest.test_reader import pdf
from support.scans import scanned_pdf

BOUNDS = Bounds(60.0, 20.0, 3_600.0)
MODEL = "minilm"
SCAN = FileFacts("pdf", 1_900_000, page_images=8)
NOTE = FileFacts("txt", 30)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def estimator(speeds: Speeds | None = None) -> Estimator:
    return Estimator(speeds or Speeds(), BOUNDS, MODEL)


def run(speeds: Speeds, file: FileFacts, pages: list[tuple[str, float]], chunks: int, per_chunk: float) -> Speeds:
    """What is learned from a file whose pages take these seconds."""
    clock = Clock()
    timeline = Timeline(estimator(speeds), file, 500, clock=clock)
    for method, seconds in pages:
        clock.now += seconds
        timeline.add_page(method, 400 * chunks // len(pages), len(pages) if file.format == "pdf" else None)
    timeline.end_reading()
    timeline.add_chunks(0, chunks)
    clock.now += per_chunk * chunks
    timeline.add_chunks(chunks, chunks)
    return timeline.learn(speeds, chunks)


def test_many_tiny_files_say_nothing_about_a_scan() -> None:
    speeds = Speeds()
    for _ in range(25):
        speeds = run(speeds, NOTE, [("text", 0.4)], 1, 0.05)
    assert 10 < estimator(speeds).estimate(SCAN).seconds < 60
    assert estimator(speeds).estimate(NOTE).seconds == pytest.approx(0.45, rel=0.3)  # they say how long a start takes


def test_scans_are_learned_from_scans() -> None:
    speeds = Speeds()
    for _ in range(12):
        speeds = run(speeds, SCAN, [("ocr", 11.0)] * 8, 30, 0.05)
    assert estimator(speeds).estimate(SCAN).seconds == pytest.approx(89.5, rel=0.15)
    text = FileFacts("pdf", 300_000)
    assert estimator(speeds).estimate(text).reading < 1.0  # a page of text is another matter
    assert Speeds.decode(speeds.encode()).rates == pytest.approx(speeds.rates, rel=1e-3)


def test_one_freak_file_moves_estimates_a_little_and_no_series_of_them_far() -> None:
    before = estimator().estimate(SCAN).seconds
    after = estimator(run(Speeds(), SCAN, [("ocr", 5_000.0)] * 8, 30, 90.0)).estimate(SCAN).seconds
    assert before < after < 2 * before
    speeds = Speeds()
    for _ in range(200):
        speeds = speeds.learn(reading_parts(SCAN, 0, 8), 1e9)
    assert speeds.rate("page.ocr:pdf") <= DEFAULTS["page.ocr"] * MAX_FACTOR


@pytest.mark.parametrize("saved", ["", "x", "[1]", '{"start": null}', '{"page.ocr:pdf": 1e300, "other": 1}'])
def test_saved_rates_that_make_no_sense_are_ignored(saved: str) -> None:
    seconds = estimator(Speeds.decode(saved)).estimate(SCAN).seconds
    assert 0 < seconds <= BOUNDS.limit(8) + 100


def test_no_file_is_expected_to_take_longer_than_it_may() -> None:
    claims = FileFacts("pdf", 100_000_000, page_images=1_000_000)
    assert estimator().estimate(claims).reading == BOUNDS.total
    clock = Clock()
    timeline = Timeline(estimator(), claims, 500, clock=clock)
    clock.now += 5
    timeline.add_page("ocr", 0, 1_000_000)
    assert timeline.remaining < BOUNDS.total + 60


def test_tasks_ahead_share_the_workers() -> None:
    assert queue_seconds(5.0, [], 0, 3) == 5.0
    assert queue_seconds(5.0, [30.0, 30.0], 2, 3) == 5.0  # a worker is free
    assert queue_seconds(5.0, [30.0] * 6, 6, 3) == 65.0
    assert queue_seconds(5.0, [2.0] * 200, 1_000, 4) == 505.0


def test_the_bar_follows_the_time() -> None:
    clock = Clock()
    timeline = Timeline(estimator(), FileFacts("pdf", 1_900_000, page_images=8), 500, clock=clock)
    report = TaskReport(Progress(), timeline)
    total, shares, errors = 8 * 10.0 + 3.0, [0.0], []

    def note(step: str) -> None:
        report.step(step)
        shares.append(report.progress.snapshot.share)
        errors.append(abs(shares[-1] - timeline.elapsed_seconds / total))

    for _ in range(8):
        clock.now += 10
        timeline.add_page("ocr", 1_900, 8)
        note("Extracting text")
    timeline.end_reading()
    for done in range(0, 31, 5):
        timeline.add_chunks(done, 30)
        note("Generating embeddings")
        clock.now += 0.5
    assert shares == sorted(shares)
    assert shares[8] > 0.9  # OCR takes 96 % of the time
    assert max(errors[1:]) < 0.1
    assert max(shares) < 1.0


def test_pages_that_are_known_count_with_their_time() -> None:
    clock = Clock()
    timeline = Timeline(estimator(), SCAN, 500, clock=clock)
    timeline.resume([("ocr", 1_900)] * 5, 50.0, 8)
    assert timeline.share == pytest.approx(0.6, abs=0.1)
    clock.now += 10
    timeline.add_page("ocr", 1_900, 8)
    assert timeline.remaining == pytest.approx(20, rel=0.2)
    assert timeline.share == pytest.approx(0.75, abs=0.05)


def test_page_sized_pictures_are_counted_without_parsing(tmp_path: Path) -> None:
    for name, data, count in (
        ("scan.pdf", scanned_pdf("one", "two", "three"), 3),
        ("text.pdf", pdf("Whales: They sing."), 0),
        ("icons.pdf", b"%PDF-1.4 " + b"<< /Subtype /Image /Width 64 /Height 64 >>" * 50, 0),
        ("empty.pdf", b"", 0),
    ):
        (tmp_path / name).write_bytes(data)
        assert count_page_images(tmp_path / name) == count, name
