"""AlterConfigs (33) replaces all configs of a resource: configs that the request leaves out return
to their defaults.
"""

from ..protocol.api_keys import ApiKey
from ..protocol.messages.alter_configs import (
    AlterConfigsResourceResponse,
)
from .config_permissions import ALTER_CONFIGS_OF_CLUSTER, ALTER_CONFIGS_OF_TOPIC
from .requested_changes import configured_resources
from .spec import Changes, Rows, Spec, copied

SPEC = Spec(
    key=ApiKey.ALTER_CONFIGS,
    at_controller=True,
    permissions=(ALTER_CONFIGS_OF_TOPIC, ALTER_CONFIGS_OF_CLUSTER),
    rows=Rows("responses", AlterConfigsResourceResponse, {"resources": copied("resource_type", "resource_name")}),
    changes=Changes("alter_configs", configured_resources),
)
