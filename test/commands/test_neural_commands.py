"""`morphit neural record` and `train`: from pictures to a field and its figures, and what happens to bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.geometry.primitives import icosphere_mesh
from morphit_ros.geometry.transforms import look_at
from morphit_ros.neural.archive import write_archive
from morphit_ros.neural.field_file import load_field, save_field
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.fields.network import NetworkField
from morphit_ros.neural.recording import Recording, load_recording, save_recording
from morphit_ros.neural.views import PosedDepths, PosedImages
from morphit_ros.simulation.rendering import available_backend
