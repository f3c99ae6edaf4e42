"""The APIs of records, groups and transactions, which no controller answers."""
