"""Output for people: progress bars and tables."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PIPE_WIDTH = 500  # columns; keeps each row on one line


def progress_bar() -> "Progress":
    """Return a progress bar that is visible on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def console() -> "Console":
    """Return a console for tables: as wide as the terminal, or one line per row in a pipe. `[text]` is plain text."""
    from rich.console import Console

    terminal = Console(markup=False)
    return terminal if terminal.is_terminal else Console(markup=False, width=PIPE_WIDTH)
