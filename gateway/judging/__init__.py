"""The gateway's judgement: which requests for changes go on to the cluster, and their record."""
