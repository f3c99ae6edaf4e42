"""How much memory the records of a process take (`records.memory.max.bytes`)."""


class Memory:
    """What the logs of a process hold, by their own counts."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def has_room(self, size: int) -> bool:
        return self.used + size <= self.limit
