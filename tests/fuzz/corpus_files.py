"""The corpus: for each target a file with an input in each line, in base64.

The files are what fuzzing distilled: the smallest inputs that together reach all that was ever
reached, and each input that once found a defect.
"""

import base64
from collections.abc import Iterable
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def corpus_of(target: str) -> list[bytes]:
    """Return the inputs that are kept for a target."""
    file = CORPUS / f"{target}.txt"
    return [base64.b64decode(line) for line in file.read_text("ascii").splitlines()] if file.exists() else []


def keep(target: str, inputs: Iterable[bytes]) -> int:
    """Write the inputs of a target, in an order that does not depend on theirs, and return how many
    there are.
    """
    lines = [base64.b64encode(each).decode() for each in sorted(set(inputs), key=lambda each: (len(each), each))]
    (CORPUS / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines), "ascii")
    return len(lines)
