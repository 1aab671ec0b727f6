"""What stands against a pose: fingers that close on the cloud, swept volumes."""
