"""The APIs whose requests a gateway judges, one form for each (`Form`)."""

from collections.abc import Mapping
from types import MappingProxyType

from ..judged import Form
from . import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    elect_leaders,
    whole,
)

FORMS: Mapping[int, Form] = MappingProxyType(
    {
        form.key: form
        for form in (
            create_topics.FORM,
            delete_topics.FORM,
            create_partitions.FORM,
            alter_configs.ALTER_CONFIGS,
            alter_configs.INCREMENTAL_ALTER_CONFIGS,
            alter_partition_reassignments.FORM,
            delete_records.FORM,
            delete_acls.FORM,
            elect_leaders.FORM,
            *whole.FORMS,
        )
    }
)
