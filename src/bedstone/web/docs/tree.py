"""The files of a corpus as people browse them: folders, the way to a file, and the files around it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedstone.services.docs.corpus import FileFacts

MAX_WHOLE_TREE = 60  # files; of larger corpora only the folder of the current file is shown
MAX_SIBLINGS = 40
MAX_NAMED_FOLDERS = 5


@dataclass
class Entry:
    """A folder with the number of files and passages in it, or a file."""

    path: str
    name: str
    title: str = ""
    files: int = 0  # 0 for a file
    passages: int = 0


@dataclass
class Branch:
    """A folder of the tree: its folders and files, and how many more there are."""

    path: str
    name: str
    branches: list["Branch"] = field(default_factory=list)
    files: list["FileFacts"] = field(default_factory=list)
    more: int = 0

    @property
    def only_file(self) -> "FileFacts | None":
        """The file of a folder that has nothing else in it: it needs no branch of its own."""
        return self.files[0] if len(self.files) == 1 and not self.branches and not self.more else None


def list_entries(files: "Sequence[FileFacts]", folder: str) -> list[Entry]:
    """Return the folders and files in a folder, folders first."""
    prefix = f"{folder}/" if folder else ""
    folders: dict[str, Entry] = {}
    inside: list[Entry] = []
    for item in files:
        if not item.path.startswith(prefix):
            continue
        name, is_below, _ = item.path[len(prefix) :].partition("/")
        if is_below:
            entry = folders.setdefault(name, Entry(prefix + name, name))
            entry.files += 1
            entry.passages += item.chunks
        else:
            inside.append(Entry(item.path, name, item.title, passages=item.chunks))
    return [*folders.values(), *inside]


def match_files(files: "Sequence[FileFacts]", text: str) -> list[Entry]:
    """Return the files with a text in their path or title."""
    wanted = text.casefold()
    return [
        Entry(item.path, item.path, item.title, passages=item.chunks)
        for item in files
        if wanted in item.path.casefold() or wanted in item.title.casefold()
    ]


def name_folders(files: "Sequence[FileFacts]") -> str:
    """Return in words how many files the first folders hold: guides 3, api 2."""
    folders = [entry for entry in list_entries(files, "") if entry.files]
    named = [f"{entry.name} {entry.files}" for entry in folders[:MAX_NAMED_FOLDERS]]
    return ", ".join([*named, *([f"{len(folders) - len(named)} more folders"] if len(folders) > len(named) else [])])


def build_tree(files: "Sequence[FileFacts]", current: str) -> Branch:
    """Return the tree beside a file: the whole one, or of a large corpus the way to the file and what is around it."""
    root = Branch("", "")
    if len(files) <= MAX_WHOLE_TREE:
        for item in files:
            _branch_of(root, item.path).files.append(item)
        return root
    branch = _branch_of(root, current)
    entries = list_entries(files, branch.path)
    folders = [entry for entry in entries if entry.files]
    branch.branches += [Branch(entry.path, entry.name, more=entry.files) for entry in folders[:MAX_SIBLINGS]]
    branch.files, branch.more = _around(files, branch.path, current)
    branch.more += sum(entry.files for entry in folders[MAX_SIBLINGS:])
    return root


def list_parents(path: str) -> list[tuple[str, str]]:
    """Return the path and the name of each folder above a path."""
    return [(str(item), item.name) for item in reversed(PurePosixPath(path).parents) if item.name]


def _branch_of(root: Branch, path: str) -> Branch:
    """Return the branch of a file's folder, with those on the way."""
    branch = root
    for folder, name in list_parents(path):
        found = next((item for item in branch.branches if item.path == folder), None)
        if found is None:
            found = Branch(folder, name)
            branch.branches.append(found)
        branch = found
    return branch


def _around(files: "Sequence[FileFacts]", folder: str, current: str) -> "tuple[list[FileFacts], int]":
    """Return the files of a folder nearest to the current one, and how many more there are."""
    siblings = list(_inside(files, folder))
    place = next((number for number, item in enumerate(siblings) if item.path == current), 0)
    start = max(0, min(place - MAX_SIBLINGS // 2, len(siblings) - MAX_SIBLINGS))
    shown = siblings[start : start + MAX_SIBLINGS]
    return shown, len(siblings) - len(shown)


def _inside(files: "Sequence[FileFacts]", folder: str) -> "Iterator[FileFacts]":
    prefix = f"{folder}/" if folder else ""
    return (item for item in files if item.path.startswith(prefix) and "/" not in item.path[len(prefix) :])
