"""Sketches of robots: bones, joints and superovoids drawn by hand, and the descriptions that they become."""
