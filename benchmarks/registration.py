"""Registration without extrinsics: how often two views of a table are brought together right, and how fast.

    python benchmarks/registration.py [--scenes 50] [--angles 60 90 120] [--varied] [--json FILE]

Two 640 x 480 clouds with 1.5 mm noise of one to four objects, own shapes and those of $MORPHIT_DATA; `perceive`
gets no pose at all. A scene counts if noise-free views of it determine the relative pose (see
test/perception/registration_scenes.py); the others are run too, and must be refused. Right: within 2 mm at
the objects' centre and within 0.5°. Process time of the whole of `perceive` on one core after a warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "perception")]

import numpy as np  # noqa: E402
from registration_scenes import RegistrationScene, is_determined, pose_error, random_scene  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_ros.perception import SceneStatus, perceive  # noqa: E402
from morphit_ros.perception.warm_up import warm_up  # noqa: E402

MOST_SHIFT, MOST_TURN = 0.002, np.radians(0.5)


def run_scene(scene: RegistrationScene) -> dict[str, Any]:
    """Outcome, error and time of one scene."""
    left, right = scene.views()
    start = time.process_time()
    found = perceive(left.cloud, right.cloud, None, None)
    seconds = time.process_time() - start
    entry: dict[str, Any] = {"seed": scene.seed, "objects": scene.names, "seconds": seconds, "message": found.message}
    if found.registration is None or found.status is SceneStatus.REGISTRATION_FAILED:
        return {**entry, "outcome": "refused"}
    shift, turn = pose_error(scene, found.registration.T_left_right)
    accurate = shift < MOST_SHIFT and turn < MOST_TURN
    return {
        **entry,
        "outcome": "right" if accurate else "wrong",
        "shift_mm": shift * 1e3,
        "turn_degrees": float(np.degrees(turn)),
        "registration_seconds": found.timings["registration"],
    }


def run_angle(angle: float, count: int, first_seed: int, varied: bool) -> dict[str, Any]:
    """Scenes from a seed on until `count` of them determine the pose."""
    determined: list[dict[str, Any]] = []
    ambiguous: list[dict[str, Any]] = []
    seed = first_seed
    with tqdm(total=count, desc=f"{angle:.0f}°", disable=not sys.stderr.isatty()) as bar:
        while len(determined) < count:
            scene = random_scene(seed, angle, varied=varied)
            seed += 1
            entry = run_scene(scene)
            if is_determined(scene):
                determined.append(entry)
                bar.update()
            else:
                ambiguous.append(entry)
    return {"angle": angle, "determined": determined, "ambiguous": ambiguous}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=50, help="scenes at each angle that count (default 50)")
    parser.add_argument("--angles", type=float, nargs="+", default=[60.0, 90.0, 120.0], help="between the cameras [°]")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first scene (default 0)")
    parser.add_argument("--varied", action="store_true", help="cameras of various heights, distances and rolls")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every scene's outcome to FILE")
    options = parser.parse_args()
    warm_up()
    run_scene(random_scene(options.first_seed, 60.0))
    print(
        f"{'angle':>6}{'right':>7}{'refused':>9}{'wrong':>7}{'of':>5}{'mm: median':>12}{'max':>6}{'°: max':>8}", end=""
    )
    print(f"{'ms: median':>12}{'max':>6}   ambiguous scenes")
    results = []
    for angle in options.angles:
        result = run_angle(angle, options.scenes, options.first_seed, options.varied)
        results.append(result)
        counts = Counter(entry["outcome"] for entry in result["determined"])
        others = Counter(entry["outcome"] for entry in result["ambiguous"])
        accepted = [entry for entry in result["determined"] if entry["outcome"] != "refused"]
        shifts = [entry["shift_mm"] for entry in accepted] or [float("nan")]
        turns = [entry["turn_degrees"] for entry in accepted] or [float("nan")]
        times = [entry["seconds"] * 1e3 for entry in result["determined"] + result["ambiguous"]]
        print(
            f"{angle:5.0f}°{counts['right']:7}{counts['refused']:9}{counts['wrong']:7}{options.scenes:5}"
            f"{np.median(shifts):12.2f}{max(shifts):6.2f}{max(turns):8.2f}{np.median(times):12.0f}{max(times):6.0f}"
            f"   {others['refused']} refused, {others['right']} right, {others['wrong']} wrong",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for result in results:
        for entry in result["determined"]:
            if entry["outcome"] != "right":
                what = f"{entry['outcome']}: {', '.join(entry['objects'])} ({entry['message']})"
                print(f"{result['angle']:.0f}°, seed {entry['seed']}, {what}")


if __name__ == "__main__":
    main()
