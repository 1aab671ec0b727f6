"""What people have already, read as recordings or density fields: pictures with poses, meshes, splats, distances."""
