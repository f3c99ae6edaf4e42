"""Mutations that make valid bytes invalid."""

from random import Random

# Bytes at which lengths, counts and varints turn over.
EVIL = (0, 1, 2, 127, 128, 255, 254)
RUNS = (
    b"\xff" * 4,
    b"\xff\xff\xff\xff\x0f",
    b"\x80" * 9,
    b"\x7f\xff\xff\xff",
    b"\xff" * 10,
    b"\x80\x00",
    b"\xc3\x28",
    b"\xed\xa0\x80",
)


def mutated(data: bytes, random: Random) -> bytes:
    """One or two faults: a byte changed, removed or added, a run put over or between, a piece cut
    out or doubled, the end cut off.
    """
    out = bytearray(data)
    for _ in range(random.randint(1, 2)):
        at = random.randint(0, len(out))
        match random.randrange(7):
            case 0 if out:
                out[at % len(out)] = random.choice(EVIL)
            case 1 if out:
                out[at % len(out)] ^= 1 << random.randrange(8)
            case 2:
                out[at:at] = random.choice(RUNS)
            case 3:
                run = random.choice(RUNS)
                out[at : at + len(run)] = run
            case 4:
                del out[at:]
            case 5:
                del out[at : at + random.randint(1, 8)]
            case 6:
                out[at:at] = out[at : at + random.randint(1, 20)]
    return bytes(out)
