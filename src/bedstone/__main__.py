"""`python -m bedstone` is the `bedstone` command."""

from bedstone.cli.main import main

if __name__ == "__main__":
    main()
