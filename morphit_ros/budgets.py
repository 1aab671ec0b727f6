"""How much anything from outside may hold: checked before memory is taken for it.

Messages, files and services are read by anybody's bytes, and a hundred of them can claim to be 96 GiB. These bounds are
far above what cameras, robots and objects are; what is beyond one is refused with an `InvalidInputError`.
"""

from __future__ import annotations

from typing import Final

from morphit_ros.errors import InvalidInputError

# Coordinates [m]: volumes and squared areas of coordinates below this cannot overflow.
LARGEST_COORDINATE: Final = 1e12

# Point clouds. A depth camera of 4K sends 8.3 million points; scans in files have more.
MOST_POINTS: Final = 1 << 26
# Meshes in files, and in messages, which become one Python object a triangle.
MOST_FACES: Final = 1 << 24
MOST_MESSAGE_FACES: Final = 200_000
# Files of meshes and clouds.
MOST_FILE_BYTES: Final = 1 << 30
# YAML that people write. MoveIt's merged parameters hold a robot description, too.
MOST_YAML_BYTES: Final = 1 << 22
MOST_YAML_DEPTH: Final = 50
# A picture laid behind a sketch, as the text that its file keeps: with bones and superovoids it must be read again.
MOST_PICTURE_CHARACTERS: Final = 1 << 21
# Values of a YAML document once its aliases and merge keys are written out.
MOST_YAML_NODES: Final = 50_000
# Base 60 and long whole numbers take time with the square of their length.
MOST_NUMBER_CHARACTERS: Final = 1000
# What a xacro file may take to expand, in a process of its own [s], [bytes].
XACRO_SECONDS: Final = 10
XACRO_BYTES: Final = 1 << 26
# The arrays of an archive once they are unpacked. A recording of 400 images in colour and depth has 0.9 GB.
MOST_ARRAY_BYTES: Final = 1 << 31
# Deflate never shrinks more than this.
MOST_SHRINKING: Final = 1032
# A chunk of a recording of topics, before and after it is unpacked; a cloud of 4K has 270 MB.
MOST_CHUNK_BYTES: Final = 1 << 29
# Messages that are kept in memory until there is a reason to write them; older ones go first.
MOST_KEPT_BYTES: Final = 1 << 29
# Requests of a service that wait while one is worked on; the next are answered as refused.
MOST_WAITING: Final = 2


def check_count(name: str, count: int, most: int, remedy: str = "") -> None:
    """Refuse more of something than there may be.

    Raises:
        InvalidInputError: it names the count and the bound.
    """
    if not 0 <= count <= most:
        raise InvalidInputError(name, count, f"at most {most}", remedy)


def check_file_size(path: str, size: int, most: int = MOST_FILE_BYTES, remedy: str = "") -> None:
    """Refuse a file of more bytes than are read at all.

    Raises:
        InvalidInputError: it names the file, its size and the bound.
    """
    if size > most:
        raise InvalidInputError(path, f"{size / 2**20:.0f} MiB", f"at most {most >> 20} MiB", remedy)
