"""A process that moves a store and says each step, for a test that kills it: `mover.py SOURCE TARGET`."""

import sys
import time
from contextlib import closing
from pathlib import Path

from bedstone.store.moving import move
from bedstone.store.moving.postgres_end import PostgresSource, PostgresTarget
from bedstone.store.moving.sqlite_end import SqliteSource, SqliteTarget

PAUSE_SECONDS = 0.003
FEW_ROWS = 7  # so that a small base has many steps


def open_source(address: str) -> "SqliteSource | PostgresSource":
    return PostgresSource(address) if address.startswith("postgresql:") else SqliteSource(Path(address))


def open_target(address: str) -> "SqliteTarget | PostgresTarget":
    return PostgresTarget(address) if address.startswith("postgresql:") else SqliteTarget(Path(address))


def say(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()
    time.sleep(PAUSE_SECONDS)  # so that it can be killed here


def main(source_address: str, target_address: str) -> None:
    with closing(open_source(source_address)) as source, closing(open_target(target_address)) as target:
        move.move(source, target, "base", say, max_rows=FEW_ROWS)
    say("end")


if __name__ == "__main__":
    main(*sys.argv[1:])
