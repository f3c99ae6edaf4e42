"""A group under random schedules of its clients: they come, sync, commit, vanish with requests that
wait, return as static members, and ask with what they knew long ago.

The model is simple. A generation is what JoinGroup says it is, and only the newest one is active:
nobody else commits, each member gets what the leader of its generation gave it, and each request is
answered once.
"""

from random import Random

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.records.groups.group import GroupState
from minicontroller.records.groups.limits import GroupLimits
from tests.records.member_clients import GROUP, Clients, Slot

SCHEDULES, STEPS = 150, 150
MOST_MS = 2 * 300_000
"""After so long without a client nothing is left to wait for."""


class Client:
    """A consumer that follows the protocol, as long as it lives."""

    def __init__(self, instance: str | None) -> None:
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.joining: Slot | None = None
        self.syncing: Slot | None = None
        self.is_stable = False

    def forget(self) -> None:
        self.__init__(self.instance)  # type: ignore[misc]


class Play:
    """One schedule, with what the clients have learned together."""

    def __init__(self, random: Random) -> None:
        self.random = random
        delay = random.choice([0, 3000])
        self.world = Clients(GroupLimits(initial_rebalance_delay_ms=delay, max_size=random.choice([3, 100])))
        self.clients = [Client(instance) for instance in (None, None, None, "one", "two")]
        self.active = 0
        """The newest generation of which a client was told."""
        self.leaders: dict[int, str] = {}
        self.given: dict[int, dict[str, bytes]] = {}
        """What the leaders gave, by generation and member id."""
        self.offset = -1
        self.slots: list[Slot] = []
        self.stale: list[tuple[int, str, str | None]] = []
        """Generations in which clients were, with their ids."""

    def step(self) -> None:
        client = self.random.choice(self.clients)
        self.read(client)
        actions = [self.advance, self.advance, self.heartbeat, self.commit, self.commit_late, self.vanish, self.leave]
        self.random.choice(actions)(client)

    def read(self, client: Client) -> None:
        if client.joining is not None and client.joining.answer is not None:
            self.read_join(client, client.joining)
        elif client.syncing is not None and client.syncing.answer is not None:
            self.read_sync(client, client.syncing)

    def read_join(self, client: Client, slot: Slot) -> None:
        client.joining, joined = None, slot.joined
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = joined.member_id
        elif joined.error_code != ErrorCode.NONE:
            client.forget()
        else:
            client.member_id, client.generation = joined.member_id, joined.generation_id
            self.stale.append((client.generation, client.member_id, client.instance))
            if joined.leader == joined.member_id and not joined.skip_assignment:
                self.leaders.setdefault(client.generation, joined.leader)
                assert self.leaders[client.generation] == joined.leader or client.instance, "one member leads"
            self.active = max(self.active, client.generation)
            assignments = {each.member_id: each.member_id.encode() for each in joined.members}
            client.syncing = self.kept(
                self.world.sync(client.generation, client.member_id, assignments, instance=client.instance)
            )
            if assignments and client.generation == self.world.group.generation:
                self.given.setdefault(client.generation, assignments)

    def read_sync(self, client: Client, slot: Slot) -> None:
        client.syncing, synced = None, slot.synced
        client.is_stable = synced.error_code == ErrorCode.NONE
        if client.is_stable and client.instance is None:
            given = self.given[client.generation]
            assert synced.assignment == given.get(client.member_id, b""), "a member gets its own assignment"
        elif synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            client.forget()

    def kept(self, slot: Slot) -> Slot:
        self.slots.append(slot)
        return slot

    # ------------------------------------------------------------------ actions

    def advance(self, client: Client) -> None:
        if client.joining is None and client.syncing is None and not client.is_stable:
            protocols = {"range": self.random.choice([b"1", b"2"])}
            version = self.random.choice([3, 8, 9])
            slot = self.world.join(
                client.member_id,
                instance=client.instance,
                version=version,
                protocols=protocols,
                rebalance_ms=self.random.choice([0, 5000, 30_000]),
            )
            client.joining = self.kept(slot)
        else:
            self.world.wait(self.random.choice([0, 10, 1000, 4000]))

    def heartbeat(self, client: Client) -> None:
        code = self.world.heartbeat(client.generation, client.member_id, client.instance)
        if code == ErrorCode.NONE:
            assert client.generation >= self.active, "only the newest generation lives"
        elif client.is_stable:
            client.is_stable = False
            if code != ErrorCode.REBALANCE_IN_PROGRESS:
                client.forget()

    def commit(self, client: Client) -> None:
        if client.is_stable:
            self.commit_as(client.generation, client.member_id, client.instance)

    def commit_late(self, _client: Client) -> None:
        if self.stale:
            self.commit_as(*self.random.choice(self.stale))

    def commit_as(self, generation: int, member_id: str, instance: str | None) -> None:
        offset = self.random.randrange(10**6)
        code = self.world.commit(offset, generation, member_id, instance=instance)
        if code == ErrorCode.NONE:
            assert generation >= self.active, "no commit of an old generation is taken"
            assert self.world.group.members.check(member_id, instance) == ErrorCode.NONE
            self.offset = offset
        if self.offset >= 0:
            assert self.world.offset() == self.offset

    def vanish(self, client: Client) -> None:
        client.forget()

    def leave(self, client: Client) -> None:
        if self.random.random() < 0.3:
            self.world.leave(client.member_id, client.instance)
            client.forget()

    # ------------------------------------------------------------------ ends

    def check_sizes(self) -> None:
        coordinator = self.world.coordinator
        assert coordinator.size == sum(group.size for group in coordinator)

    def settle(self) -> None:
        """All clients live and follow the protocol: they become stable together."""
        for _ in range(60):
            for client in self.clients:
                self.read(client)
                if client.is_stable:
                    self.heartbeat(client)
                elif client.joining is None and client.syncing is None:
                    self.advance(client)
            self.world.wait(1000)
        stable = [client for client in self.clients if client.is_stable]
        members = {member.member_id for member in self.world.group.members}
        assert members == {client.member_id for client in stable}, "the members are those that live"
        assert {client.generation for client in stable} == {self.world.group.generation}
        assert len(stable) >= min(3, len(self.clients))

    def die(self) -> None:
        self.world.wait(MOST_MS)
        assert self.world.group.state is GroupState.EMPTY
        assert self.world.coordinator.next_deadline() is None
        assert all(slot.answer is not None for slot in self.slots), "each request is answered"


def test_any_schedule() -> None:
    """Whatever clients do, one generation is active, and each member gets exactly its assignment;
    those that live come together again, and of those that died nothing waits.
    """
    for seed in range(SCHEDULES):
        play = Play(Random(seed))
        try:
            for _ in range(STEPS):
                play.step()
                play.check_sizes()
            if seed % 2:
                play.settle()
            play.die()
        except AssertionError as error:
            error.add_note(f"in the schedule of seed {seed}, group {GROUP}")
            raise
