"""Methods beside each other over numbers of spheres: runs, tables, plots."""
