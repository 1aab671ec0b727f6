"""What a cover shall take: formulas, surfaces, meshes, height maps."""
