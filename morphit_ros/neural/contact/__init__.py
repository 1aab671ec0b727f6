"""Contact of point bodies with shapes: overlap, normal force, friction; compiled."""
