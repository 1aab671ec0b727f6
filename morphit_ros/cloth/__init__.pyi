from .cloth import Cloth as Cloth, simulate_cloth as simulate_cloth
from .config import ClothConfig as ClothConfig
from .scene import drawn_shapes as drawn_shapes, load_shapes as load_shapes, save_shapes as save_shapes
from .terrain import (
    Texture as Texture,
    save_mesh as save_mesh,
    solid_terrain as solid_terrain,
    texture_colors as texture_colors,
    textures as textures,
)
