"""IncrementalAlterConfigs (44) sets, deletes, appends to and subtracts from single configs of a
resource.
"""

from ..protocol.api_keys import ApiKey
from ..protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResourceResponse,
)
from .config_permissions import ALTER_CONFIGS_OF_CLUSTER, ALTER_CONFIGS_OF_TOPIC
from .requested_changes import configured_resources
from .spec import Changes, Rows, Spec, copied

SPEC = Spec(
    key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    at_controller=True,
    permissions=(ALTER_CONFIGS_OF_TOPIC, ALTER_CONFIGS_OF_CLUSTER),
    rows=Rows(
        "responses", IncrementalAlterConfigsResourceResponse, {"resources": copied("resource_type", "resource_name")}
    ),
    changes=Changes("incremental_alter_configs", configured_resources),
)
