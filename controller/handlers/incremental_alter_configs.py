"""IncrementalAlterConfigs (44) sets, deletes, appends to and subtracts from single configs of a
resource.
"""

from ...admin.incremental_alter_configs import SPEC
from ...network.serving.api import served
from .config_changes import handle, receive

API = served(SPEC, handle, receiver=receive)
