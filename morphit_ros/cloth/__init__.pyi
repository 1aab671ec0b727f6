from .cloth import Cloth as Cloth, simulate_cloth as simulate_cloth
from .config import ClothConfig as ClothConfig
