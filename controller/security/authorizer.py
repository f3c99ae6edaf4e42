"""A node's authorization: the authorizer that decides what callers may do, and what is the same
with every authorizer.

Rule: whatever cannot be decided is denied.
"""

from collections.abc import Callable, Sequence

from ...policies.authorizer import Action, Authorizer, Requester

OnDenied = Callable[[Requester, Action], None]


class Authorization:
    """Asks a node's authorizer. Super users may do everything and are not asked about."""

    def __init__(
        self,
        authorizer: Authorizer,
        super_users: frozenset[str] = frozenset(),
        on_denied: OnDenied = lambda *_denied: None,
    ) -> None:
        self._authorizer = authorizer
        self._super_users = super_users
        self._on_denied = on_denied

    def allows(self, requester: Requester, actions: Sequence[Action], *, logs_denials: bool = True) -> Sequence[bool]:
        """Return, for each action in order, whether the requester may do it. `logs_denials` is
        False for resources that the client did not name, such as all topics of a listing.
        """
        if requester.principal in self._super_users:
            return [True] * len(actions)
        decisions = self._authorizer.authorize(requester, actions)
        if logs_denials:
            for action, allowed in zip(actions, decisions, strict=True):
                if not allowed:
                    self._on_denied(requester, action)
        return decisions
