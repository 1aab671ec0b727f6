"""Identify the friction of an object from the way it was seen to slide, with its standard deviation."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from morphit_ros import neural
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.replay.panda_push import box_for_push

picture, truth, noise = Path(*sys.argv[1:2], "09_identify_friction.png"), 0.35, 1e-3

# A box of 0.2 kg on a table, which slides until friction stops it. Its mass does not matter here.
_, body = box_for_push((0.10, 0.06, 0.04), mass=0.2)
table = neural.Obstacle(ContactHalfSpace(), name="table")
start = neural.BodyState([0.0, 0.0, 0.02], velocity=[1.2, 0.3, 0.0], angular_velocity=[0.0, 0.0, 2.0])
world = neural.World([body], [table], neural.ContactParameters(friction=truth), step=0.004)
states = neural.simulate(world, [start], 120).states[:, 0]
times = 0.004 * np.arange(len(states))

# A camera sees it every 20 ms, with noise of 1 mm and 10 mrad. Your own: `read_track("slide.csv")`.
track = neural.PoseTrack(times[::5], states[::5, :3], states[::5, 3:7]).with_noise(noise, 0.01, seed=0)
# The model of the identification knows the shape, but neither friction nor the first state.
motion = neural.SimulatedMotion(neural.World([body], [table], neural.ContactParameters(), step=0.005))
config = neural.IdentificationConfig(position_noise=noise, rotation_noise=0.01)
slide = neural.Experiment(motion, (track,), None, "unknown")
found = neural.identify(slide, neural.Unknown("friction", 0.1, 0.0, 1.0), config)
value, sigma = found.values["friction"], found.standard_deviations["friction"]
print(f"friction {value:.4f} +- {sigma:.4f}, truth {truth}: {abs(value - truth) / sigma:.1f} sigma off")

plt.figure(figsize=(6.0, 3.6), layout="constrained")
plt.plot(times, 1e3 * np.linalg.norm(states[:, :2], axis=1), label=f"truth, friction {truth}")
plt.plot(track.times, 1e3 * np.linalg.norm(track.positions[:, :2], axis=1), ".", label="seen, with 1 mm of noise")
plt.gca().set(xlabel="time [s]", ylabel="distance [mm]", title=f"friction {value:.3f} ± {sigma:.3f}")
plt.legend()
plt.savefig(picture, dpi=100)
