"""`python -m minicontroller` is the `minicontroller` command."""

from .cli.main import main

if __name__ == "__main__":
    main()
