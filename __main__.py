"""`python -m minicontroller` is the `minicontroller` command."""

from .controller.command_line.cli import main

if __name__ == "__main__":
    main()
