"""Rounds of the soak test that are not only kills: imports, docs builds, a full disk and damaged files."""

import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from soak.knowledge import Round, Story, call, call_tool, expect, kill, run_until_killed, serving, text_of
from support.disks import SmallDisk
from support.processes import BEDSTONE, Listening, bedstone, clean_environment, listening

IMPORTED = 5
PAGES = 30
CHANGED_PAGES = 3
MAX_WAIT_SECONDS = 60


def import_and_kill(story: Story, data: Path, chance: random.Random) -> None:
    """Kill an import, and repeat it to its end: then every document of the archive is there."""
    folder = story.folder.parent / f"import-{story.count}"
    folder.mkdir()
    numbers = range(story.count + 1, story.count + 1 + IMPORTED)
    story.count += IMPORTED
    for number in numbers:
        (folder / f"{number}.txt").write_text(text_of(number))
    archive, other = folder.with_suffix(".zip"), folder.with_suffix(".data")
    finish("knowledge", "add", folder, "--data-dir", other)
    finish("knowledge", "export", archive, "--data-dir", other)
    story.unsure |= set(numbers)
    command = ("knowledge", "import", archive, "--data-dir", data)
    kill_command(chance.uniform(0.3, 3), *command)
    finish(*command)
    story.unsure -= set(numbers)
    story.promised |= set(numbers)


def build_docs_and_kill(story: Story, data: Path, chance: random.Random) -> None:
    """Kill a docs build: a server answers from the pages before or after it, and from all of them after the next."""
    folder, index = story.folder.parent / "docs", data.parent / "docs-index"
    folder.mkdir(exist_ok=True)
    known = {path.name: path.read_text().split()[-1] for path in folder.glob("*.md")}
    changed = chance.sample(range(PAGES), CHANGED_PAGES if known else PAGES)
    for page in changed:
        word = f"word{chance.randrange(10**9)}x"
        (folder / f"{page}.md").write_text(f"# Page {page}\n\nOnly this page says {word}")
    build = ("docs", "build", folder, "--out", index, "--embedding-provider", "none")
    kill_command(chance.uniform(0.2, 1.5), *build)
    stable = {name: word for name, word in known.items() if int(name.removesuffix(".md")) not in changed}
    if (index / "metadata.json").exists():
        find_pages(story, index, stable)
    finish(*build)
    find_pages(story, index, {path.name: path.read_text().split()[-1] for path in folder.glob("*.md")})


def find_pages(story: Story, index: Path, words: dict[str, str]) -> None:
    with listening("--toolsets", "docs", "--docs-index", index, log=story.folder.parent / "docs-log") as server:
        for page, word in words.items():
            hits = call_tool(server, "search_docs", {"query": word})["hits"]
            expect(bool(hits) and hits[0]["filepath"] == page, f"{page} is not found by {word}: {hits}")


def fill_the_disk(story: Story, data: Path, chance: random.Random) -> None:
    """Fill the disk while files are added, and give the room back before or after a kill."""
    disk = SmallDisk(data.parent)
    with serving(story, data) as server:
        act_for(story, server, chance.uniform(0.2, 1.0))
        disk.fill(chance.choice([0, 0, 2**12, 2**16, 2**20]))
        try:
            act_for(story, server, chance.uniform(0.5, 2.0))
            check_health(server)
            if chance.random() < 0.5:
                kill(server, 0)
        finally:
            disk.free()
        if server.process.poll() is None:
            act_for(story, server, chance.uniform(0.1, 1.0))
            kill(server, 0)


def damage_a_file(story: Story, data: Path, chance: random.Random) -> None:
    """Damage a file of the store, the index or a text: nothing is lost, and no answer is silently shorter."""
    if not story.there:
        run_until_killed(story, data, chance)
        return
    victims = {
        heal_index: [path for path in (data / "index").rglob("*") if path.is_file() and is_of_index(path)],
        heal_text: [data / "documents" / name / "text.json.z" for name in story.there],
        heal_store: [data / "index" / "knowledge.sqlite"],
    }
    heal = chance.choice([kind for kind, paths in victims.items() if paths])
    path = chance.choice(victims[heal])
    chance.choice(DAMAGES)(path)
    heal(story, data, path)


def is_of_index(path: Path) -> bool:
    is_words = path.parent.name == "words" and not path.name.startswith(".") and not path.name.endswith(".lock")
    return is_words or path.name.startswith("vectors")


def heal_index(story: Story, data: Path, _: Path) -> None:
    """The server rebuilds it, and never says that it is healthy while documents are not found."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    with serving(story, data) as server:
        while not check_health(server, story):
            expect(time.monotonic() < deadline, "the index is not rebuilt")
            time.sleep(0.1)
        kill(server, 0)


def heal_text(story: Story, data: Path, path: Path) -> None:
    """Reading it is an error, `verify` finds it, and `rebuild` reads the document again."""
    with serving(story, data) as server:
        answer = call(server, "get", {"document_id": path.parent.name})
        expect(not answer["success"], f"a damaged text was returned: {answer}")
        kill(server, 0)
    rebuild(data)


def heal_store(story: Story, data: Path, path: Path) -> None:
    """Every call says that the store is damaged or lost, and `rebuild` brings every document back."""
    for extra in ("-wal", "-shm"):
        path.with_name(f"{path.name}{extra}").unlink(missing_ok=True)
    with serving(story, data) as server:
        health = call(server, "status", {})["health"]
        answer = call(server, "search", {"query": "about the bay"})
        expect(not answer["success"] or health["status"] == "healthy", f"{health} and {answer}")
        kill(server, 0)
    rebuild(data)


def rebuild(data: Path) -> None:
    found = bedstone("knowledge", "verify", "--json", "--data-dir", data)
    expect(found.returncode == 1, f"verify found nothing: {found.stdout} {found.stderr}")
    finish("knowledge", "rebuild", "--data-dir", data)
    finish("knowledge", "verify", "--data-dir", data)


def check_health(server: Listening, story: Story | None = None) -> bool:
    """Ask whether the base is healthy; if it says so, searches work, and find the documents of a story."""
    health = call(server, "status", {})["health"]
    if health["status"] != "healthy":
        expect(bool(health.get("issues")), f"degraded without a reason: {health}")
        return False
    for name, number in list(story.there.items() if story else ())[:5]:
        found = call(server, "search", {"query": f"subject{number}x", "top_k": 1})
        hits = [hit["document_id"] for hit in found.get("results", ())]
        expect(hits == [name], f"healthy, but subject{number}x finds {found}")
    found = call(server, "search", {"query": "about the bay"})
    expect(found["success"] or found["error"] == "empty_knowledge_base", f"healthy, but {found}")
    return True


def act_for(story: Story, server: Listening, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(HTTPException):
            story.act(server)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes(byte ^ 0x5A for byte in content[:64]) + content[64:])


def remove(path: Path) -> None:
    path.unlink()


def kill_command(after: float, *arguments: str | Path) -> None:
    """Run a command, and kill it after some seconds if it has not ended by itself."""
    process = subprocess.Popen(
        [BEDSTONE, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(after)
    process.send_signal(signal.SIGKILL)
    process.wait(10)


def finish(*arguments: str | Path) -> None:
    done = bedstone(*arguments)
    expect(done.returncode == 0, f"{' '.join(map(str, arguments))}: {done.stdout} {done.stderr}")


DAMAGES: tuple[Callable[[Path], None], ...] = (truncate, garble, remove)
ROUNDS: tuple[Round, ...] = (import_and_kill, build_docs_and_kill, fill_the_disk, damage_a_file)
