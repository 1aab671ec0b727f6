"""One executable a file, each a thin shell around a core object."""
