"""Off-screen rendering without a display: EGL where it works, else OSMesa.

MuJoCo reads its backend from the environment when it is imported, so every module of this subpackage gets MuJoCo from
`import_mujoco`, which chooses first. ``MUJOCO_GL`` set by the user is respected.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import MissingDependencyError

_REMEDY = (
    "Install Mesa: 'sudo apt install libegl1 libgl1-mesa-dri' (EGL) or 'sudo apt install libosmesa6' (OSMesa). "
    "Where mujoco was imported before this package, set MUJOCO_GL=egl or osmesa."
)


@cache
def import_mujoco() -> Any:
    """The module mujoco, with a rendering backend that works on this machine, or none.

    Raises:
        MissingDependencyError: MuJoCo is not installed.
    """
    if sys.platform == "linux" and "MUJOCO_GL" not in os.environ and "mujoco" not in sys.modules:
        os.environ["MUJOCO_GL"] = available_backend() or "disabled"
    with needed_for("the simulation"):
        import mujoco
    return mujoco


@cache
def available_backend() -> str | None:
    """``egl`` or ``osmesa``, whichever can draw off screen here; None if neither can."""
    if _egl_works():
        return "egl"
    if ctypes.util.find_library("OSMesa") is not None:
        return "osmesa"
    return None


def _egl_works() -> bool:
    """Whether a device's EGL display can be initialised, asked of the library itself."""
    device_extension, no_context = 0x313F, None
    library = ctypes.util.find_library("EGL")
    if library is None:
        return False
    try:
        egl = ctypes.CDLL(library)
        address = egl.eglGetProcAddress
    except (OSError, AttributeError):
        return False
    address.restype = ctypes.c_void_p
    pointers = [address(name) for name in (b"eglQueryDevicesEXT", b"eglGetPlatformDisplayEXT")]
    if not all(pointers):
        return False
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(pointers[0])
    get_display = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(pointers[1])
    devices, count = (ctypes.c_void_p * 16)(), ctypes.c_int()
    if not query(len(devices), ctypes.addressof(devices), ctypes.addressof(count)):
        return False
    initialize = egl.eglInitialize
    initialize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    for device in devices[: count.value]:
        display = get_display(device_extension, device, no_context)
        if display and initialize(display, None, None):
            return True
    return False


class SceneOption(Protocol):
    """The part of mujoco.MjvOption that is used here."""

    geomgroup: NDArray[np.uint8]


class OffscreenRenderer:
    """Draws one model at one size. Keeps an OpenGL context until `close`.

    Args:
        model: a mujoco.MjModel.
        width, height: of the picture [px].
        samples: anti-aliasing; 0 for depth, which must not be averaged over edges.

    Raises:
        MissingDependencyError: neither EGL nor OSMesa works; names the packages.
    """

    def __init__(self, model: Any, width: int, height: int, samples: int) -> None:
        mujoco = import_mujoco()
        if os.environ.get("MUJOCO_GL") == "disabled":
            raise MissingDependencyError("EGL or OSMesa", "rendering the depth cameras", _REMEDY)
        # The context takes its buffer from the model: exactly as large as needed, since all of it is cleared each time.
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        model.vis.quality.offsamples = samples
        try:
            self._renderer = mujoco.Renderer(model, height, width)
        # PyOpenGL and MuJoCo raise whatever their loaders raise: any of it means that there is no context.
        except Exception as error:
            raise MissingDependencyError("EGL or OSMesa", f"rendering ({error})", _REMEDY) from error
        # Shadows are for people; they cost a software renderer ten times the picture itself.
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = samples > 0
        self._option: SceneOption = mujoco.MjvOption()
        # Group 3 holds the collision geometry: felt, not seen.
        self._option.geomgroup[:] = [1, 1, 1, 0, 0, 0]

    def depth(self, data: Any, camera: str) -> NDArray[np.float32]:
        """Distance along the optical axis (H, W) [m]; the far clipping plane where nothing is."""
        self._renderer.enable_depth_rendering()
        self._renderer.update_scene(data, camera, self._option)
        return self._renderer.render()

    def picture(self, data: Any, camera: str) -> NDArray[np.uint8]:
        """Colours (H, W, 3)."""
        self._renderer.disable_depth_rendering()
        self._renderer.update_scene(data, camera, self._option)
        return self._renderer.render()

    def close(self) -> None:
        """Release the OpenGL context."""
        self._renderer.close()
