"""Runs a node with one of the bugs."""

import sys

from minicontroller.cli.main import main
from tests.faults.planted import BUGS

if __name__ == "__main__":
    BUGS[sys.argv.pop(1)].plant()
    main()
