"""The names in the tree that the measures depend on. What moves or is renamed is corrected here."""

NODE = "controller"
"""The folder of the node and its controller, which the roles beside it should not reach."""
ROLES_BESIDE_THE_NODE = ("gateway", "client")

MESSAGES = "protocol/messages"
"""The folder with one module of messages for each API."""
API_KEYS = "protocol/api_keys.py"
"""The module with the keys of all APIs."""
SAMPLE_API = "create_partitions"
"""The API whose files are counted by themselves: a small one that changes something."""

DECLARATIONS = {"API": ("ServedApi", "served", "Spec"), "SPEC": ("Spec",)}
"""The assignments that declare an API, and the functions whose results they are: `API = ...` where
a role answers it, and `SPEC = ...` where that is declared for all roles.
"""
SHARE_OF_HANDLERS = 3
"""Where one module of so many declares an API, the whole folder belongs to the handlers."""

CLOCK = "clock.py"
"""The module with the clock that can be advanced, which reads the machine's for it."""
ADVANCED_CLOCK = frozenset({("trio", "current_time"), ("clock", "now"), ("clock", "now_ms")})
"""The functions that read the clock that can be advanced: `trio.run` is given it."""
MACHINE_CLOCK = frozenset(
    {
        ("time", "time"),
        ("time", "time_ns"),
        ("time", "monotonic"),
        ("time", "monotonic_ns"),
        ("datetime", "now"),
        ("datetime", "utcnow"),
        ("date", "today"),
    }
)
"""The functions that read a clock which nothing advances."""
STOPWATCH = frozenset({("time", "perf_counter"), ("time", "perf_counter_ns")})
"""The functions that measure how long work takes, and the timeouts of threads and of foreign
programs. These go by real time, whatever a clock is advanced by.
"""
PEOPLES_PROGRAMS = ("cli", "client", "pipeline", "text.py")
"""What runs in the programs that a person starts for themselves, whose time is that of their
machine.
"""

SLICING_NAMES = frozenset({"are_few", "AT_ONCE"})
"""Names by which a handler decides whether it slices time; so does each name with SLICING_PART."""
SLICING_PART = "time_slices"

POLICY_INTERFACE = "policies/interface.py"
"""The module with the classes of requests that a policy decides; their names end in `Request`."""

_OF_THE_NODE = """
RequestedChange Change PlannedChange RequestedDeletion Alteration IncrementalChange Element CompletedElement
AuditedRequest DecidedElement Delta StagedElement
"""
_OF_THE_GATEWAY = "Part JudgedPart Judged Question Outcome Result PassedElement ClusterAnswer"
_OF_THE_AUDIT_LOG = "Decision Requested EntityChange RecentDecision"
CHANGE_CLASSES = frozenset([*_OF_THE_NODE.split(), *_OF_THE_GATEWAY.split(), *_OF_THE_AUDIT_LOG.split()])
"""The classes that describe a requested change and its fate. A class that takes over from one of
them is added here.
"""
OTHER_MEANINGS = ("pipeline",)
"""The folders whose classes of these names describe something else."""
