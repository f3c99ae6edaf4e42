"""The hash of what was read of an audit file, by which a later run sees that it is another one.

Rule: it adds up. Each block of the uncompressed text has a hash, and the digest holds their sum, so
the parts of a file that several workers read come to the same digest as the whole, and reading on
needs only the beginning of the block in which reading ended. It finds damage and changes by hand;
somebody who knows it, and means to, may find a file with the same digest.
"""

from hashlib import sha256

import msgspec

BLOCK_BYTES = 1 << 16
HASH_BYTES = 16
_ALL = 1 << 8 * HASH_BYTES


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """The hash of a text up to a byte."""

    blocks: str
    """The sum of the hashes of all whole blocks, in hexadecimal."""
    tail: str
    """The hash of the block that has begun."""

    def followed_by(self, part: "Digest") -> "Digest":
        """Return the digest of this text and the part that follows it, which was hashed from the
        begin of the block in which this text ends.
        """
        return Digest(f"{(int(self.blocks, 16) + int(part.blocks, 16)) % _ALL:x}", part.tail)


def block_begin(offset: int) -> int:
    return offset - offset % BLOCK_BYTES


class Hashing:
    """Hashes a text piece by piece, and remembers the digest of what it had at a mark."""

    def __init__(self, offset: int) -> None:
        self._number = offset // BLOCK_BYTES
        self._room = BLOCK_BYTES
        self._sum = 0
        self._block = sha256(self._number.to_bytes(8))
        self.mark()

    def update(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while len(view) >= self._room:
            self._block.update(view[: self._room])
            view = view[self._room :]
            self._sum += int.from_bytes(self._block.digest()[:HASH_BYTES])
            self._number += 1
            self._block, self._room = sha256(self._number.to_bytes(8)), BLOCK_BYTES
        self._block.update(view)
        self._room -= len(view)

    def mark(self) -> None:
        self._marked = self._sum, self._block.copy()

    @property
    def marked(self) -> Digest:
        blocks, block = self._marked
        return Digest(f"{blocks % _ALL:x}", block.hexdigest()[: 2 * HASH_BYTES])
