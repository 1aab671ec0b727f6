"""Plan how a sphere pushes an object over a table to a goal, and replay the plan in another physics engine."""

import sys
from pathlib import Path

import numpy as np

from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw
from morphit_ros.neural import BodyState, PushConfig, plan_push
from morphit_ros.neural.trajectory_optimization.push import rest_on_plane
from morphit_ros.neural.trajectory_optimization.pusher_start import place_pusher
from morphit_ros.replay.panda_push import box_for_push
from morphit_ros.replay.push import Drive, ReplayConfig, body_in_pieces, pusher_motion, replay_push
from morphit_ros.replay.push_picture import draw_push

picture = Path(*sys.argv[1:2], "10_plan_a_push.png")
size, mass, friction, way = (0.06, 0.10, 0.04), 0.2, 0.3, np.array([0.15, 0.03])

# A box as contact dynamics have it (`sample_body` makes that of a learned field), and as a mesh for MuJoCo.
_, body = box_for_push(size, mass)
item = body_in_pieces(body, [box_mesh(size)], "box")
radius = 0.1 * body.size
config = PushConfig.scaled(body, float(np.linalg.norm(way)), 2.4, friction, radius)
start = rest_on_plane(body, BodyState([0.0, 0.0, 0.5 * size[2] + 1e-4]), config)
pusher = place_pusher(start, body.points, way, radius, friction, 0.5)
plan = plan_push(body, start, start.position[:2] + way, pusher, config=config)
print(f"plan: {plan.message}, {plan.iterations} steps, {plan.seconds:.1f} s, {1e3 * plan.miss:.2f} mm from the goal")
if not plan.success:
    sys.exit(1)

# MuJoCo has the box as a rigid body with contacts of its own, and moves the sphere as planned.
T_world_body = make_transform(matrix_from_quat_xyzw(plan.states[0, 0, 3:7]), plan.states[0, 0, :3])
replay = replay_push(item, T_world_body, pusher_motion(plan), Drive.MOTION, ReplayConfig(friction=friction))
miss = np.linalg.norm(replay.positions[-1, :2] - plan.goal[:2])
print(f"MuJoCo: {1e3 * miss:.2f} mm from the goal, after a way of {1e3 * np.linalg.norm(way):.0f} mm")
draw_push(body, plan, {"MuJoCo": replay.positions}, picture)
