from messages_double import message

SolidPrimitive = message("SolidPrimitive", type=0, dimensions=[])
SolidPrimitive.BOX, SolidPrimitive.SPHERE, SolidPrimitive.CYLINDER = 1, 2, 3
MeshTriangle = message("MeshTriangle", vertex_indices=[])
Mesh = message("Mesh", triangles=[], vertices=[])
