"""The index in an OpenSearch cluster: what one process writes, all replicas of a deployment search."""
