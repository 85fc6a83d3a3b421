"""What is printed for people: progress on a terminal, tables anywhere."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PIPED_WIDTH = 500  # columns where no terminal breaks lines


def progress_bar() -> "Progress":
    """A bar on a terminal; nothing where nobody sees it move."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def console() -> "Console":
    """For tables: as wide as the terminal; in a pipe a row stays a line."""
    from rich.console import Console

    found = Console()
    return found if found.is_terminal else Console(width=PIPED_WIDTH)
