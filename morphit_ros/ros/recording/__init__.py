"""Topics of a running graph as a file, and such a file as topics of a graph."""
