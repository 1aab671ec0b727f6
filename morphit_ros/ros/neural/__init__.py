"""Neural objects on the graph: builds, requests, views."""
