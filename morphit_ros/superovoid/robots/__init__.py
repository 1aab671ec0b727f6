"""Robots as superovoids: fits of links, files, distances of a robot in a world."""
