"""AlterConfigs (33) replaces all configs of a resource: configs that the request leaves out return
to their defaults.
"""

from ...admin.alter_configs import SPEC
from ...network.serving.api import served
from .incremental_alter_configs import handle, receive

API = served(SPEC, handle, receiver=receive)
