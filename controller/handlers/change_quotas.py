"""The quota of changes (`controller_mutation_rate`, KIP-599) as the APIs that change topics apply
it: under the principal and client id of the client, at the active controller.
"""

from ...cluster.quotas.mutation_quota import MutationQuotas, RequestQuota
from ...network.serving.context import RequestContext
from ...policies.interface import ANONYMOUS


def quota_of(quotas: MutationQuotas, context: RequestContext, *, strict_since: int) -> RequestQuota:
    """Return the quota of a request. From version `strict_since` of the API on it refuses changes;
    older clients, which do not know the error, only have to wait. Topics that are created
    automatically count, and nobody waits for them.
    """
    origin = context.origin
    strict = origin.api_key < 0 and origin.api_version >= strict_since
    user = (origin.principal or ANONYMOUS).partition(":")[2]
    return quotas.of_request(user, context.client_id or "", strict=strict)
