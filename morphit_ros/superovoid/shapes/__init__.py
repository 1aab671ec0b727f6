"""One superovoid: its surface, volume, curvature, dents and meshes."""
