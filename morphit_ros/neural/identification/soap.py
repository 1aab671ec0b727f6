"""The paper's soap: friction from a real track (Dynamics-Augmented Neural Objects, section V.A).

Settings are those of the authors' script. Lengths are in the field's unit, 15.34 times the real ones; gravity is kept.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.identification.experiments import Experiment, StartKnowledge
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.simulated_motion import SimulatedMotion
from morphit_ros.neural.identification.tracks import PoseTrack
from morphit_ros.neural.published import load_published_body, published_soap_track

# Rollouts take the frames' step divided by this: contact wants about 0.01 s.
_DIVISIONS = 3
# "Smoothing 8" of the authors: friction goes with 2/pi atan(8 v), which is 71 % of its limit at this speed [m/s].
_SLIP_SPEED = 0.255
# Noise of the track: what the best fit leaves in positions; the orientation was not tracked but set.
SOAP_CONFIG = IdentificationConfig(position_noise=0.01, rotation_noise=0.1)


def soap_experiment(folder: str | Path, knowledge: StartKnowledge = "known") -> Experiment:
    """The soap that slides over a table, as the authors set it up.

    Args:
        folder: with `bluesoap.npz` and `soap_pose_track.csv`.
        knowledge: "known": the first velocity is the difference of the first two frames, as the authors have it; else
            it is estimated along.

    Raises:
        ResourceNotFoundError, InvalidInputError: files that are missing or broken.
    """
    body = load_published_body(Path(folder) / "bluesoap.npz")
    published = published_soap_track(Path(folder) / "soap_pose_track.csv")
    track = PoseTrack(published.times, published.positions, published.quats_xyzw)
    frame = float(track.times[1] - track.times[0])
    laws = ContactParameters(
        spring=3e4, damper=1e5, sliding_drag=0.0, rolling_friction=0.4, slip_speed=_SLIP_SPEED, size=1.0
    )
    world = World([body], [Obstacle(ContactHalfSpace(), name="table")], laws, step=frame / _DIVISIONS)
    start = None
    if knowledge == "known":
        velocity = (track.positions[1] - track.positions[0]) / frame
        start = np.concatenate([track.positions[0], track.quats_xyzw[0], velocity, np.zeros(3)])[None]
    return Experiment(SimulatedMotion(world), (track,), start, knowledge)
