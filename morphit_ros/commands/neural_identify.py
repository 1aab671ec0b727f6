"""`morphit neural identify`: friction, mass and inertia of an object from a track of its motion."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.reports import add_json_option, say, write_json
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.neural.body import ContactBody
    from morphit_ros.neural.identification import Experiment, IdentificationConfig, IdentificationResult, Unknown

# Of the rollouts where none is given and the object allows it [s].
_STEP = 0.01
_FORMAT = "CSV with the header t,x,y,z,qx,qy,qz,qw [s, m]"
# What an option says that a source of the object has its own of.
_FOREIGN = {
    "soap": ("mass", "set", "frame", "table", "pusher", "step"),
    "body": ("mass",),
}
_BOUNDS = {"friction": (0.3, 0.0, 1.0), "mass_scale": (1.0, 0.1, 10.0), "inertia_scale": (1.0, 0.2, 5.0)}


def add_parser(actions: Any) -> None:
    parser = actions.add_parser(
        "identify",
        help="friction, mass and inertia from a track",
        description=(
            f"What of an object fits the way it was seen to move on a table. Tracks: {_FORMAT}; or, with --soap, the "
            "authors' folder with soap_pose_track.csv and bluesoap.npz."
        ),
    )
    parser.add_argument("tracks", nargs="+", metavar="TRACK", help="one file for each observed motion")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--field", metavar="FILE", help="density field, written by 'morphit neural train'")
    source.add_argument("--body", metavar="FILE", help="sampled body in the authors' form (bunny.npz)")
    source.add_argument(
        "--soap", action="store_true", help="TRACK is the authors' folder: their soap, as they set it up"
    )
    parser.add_argument("--mass", type=float, metavar="KG", help="of the object, with --field (default: 1)")
    parser.add_argument(
        "--unknown", action="append", metavar="NAME[=START:LOWER:UPPER]",
        help="friction, mass_scale, inertia_scale, spring ... repeatable (default: friction)",
    )  # fmt: skip
    parser.add_argument("--set", action="append", metavar="NAME=VALUE", help="a contact parameter, repeatable")
    parser.add_argument(
        "--frame",
        choices=("field", "body"),
        help="what the track follows: the field's frame or the centre of mass (default: field)",
    )
    parser.add_argument("--table", type=float, metavar="Z", help="height of the table [m] (default: 0)")
    parser.add_argument(
        "--pusher", nargs=2, metavar=("TRACK", "RADIUS"), help="a ball that was moved along a track, for one TRACK"
    )
    parser.add_argument(
        "--start",
        choices=("known", "velocity_unknown", "unknown"),
        default=None,
        help="what of the first state is certain (default: velocity_unknown; with --soap known)",
    )
    parser.add_argument(
        "--step", type=float, metavar="S", help="of the rollouts [s] (default: 0.01, less for objects under 10 cm)"
    )
    parser.add_argument(
        "--noise", nargs=2, type=float, metavar=("M", "RAD"), help="of the tracks (default: 0.001 0.02)"
    )
    parser.add_argument(
        "--window", type=int, default=0, metavar="FRAMES", help="cut tracks into windows of so many poses"
    )
    parser.add_argument(
        "--corrections", type=int, default=0, metavar="N", help="corrections for the length of the step"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.neural.identification import SimulatedMotion, identify

    _refuse_foreign_options(options)
    config = _config(options)
    unknowns = [_unknown(word) for word in options.unknown or ["friction"]]
    experiments = _experiments(options)
    motion = experiments[0].motion
    assert isinstance(motion, SimulatedMotion)
    step = motion.world.step
    result = identify(experiments, unknowns, config)
    words, numbers = report(result, step), content(result, unknowns, step)
    if options.soap and options.start is None:
        # What the authors' first velocity, from two frames of a noisy track, does to the result.
        from morphit_ros.neural.identification.soap import soap_experiment

        freer = identify(soap_experiment(options.tracks[0], "velocity_unknown"), unknowns, config)
        words += f"\n\nwith the first velocity estimated along (--start velocity_unknown):\n{report(freer, step)}"
        numbers["velocity_estimated"] = content(freer, unknowns, step)
    if options.json != "-":
        print(words)
    if options.json:
        write_json(numbers, options.json)
    return 0 if result.success else 1


def _refuse_foreign_options(options: argparse.Namespace) -> None:
    """Refuse what would not be heard."""
    from morphit_ros.errors import InvalidInputError

    for source, names in _FOREIGN.items():
        for name in names:
            value = getattr(options, name)
            if getattr(options, source) and value is not None:
                said = " ".join(value) if isinstance(value, list) else value
                raise InvalidInputError(f"--{name}", said, f"no such option with '--{source}'", "It has its own.")


def report(result: IdentificationResult, step: float) -> str:
    """The result for people, with the step of its rollouts [s]."""
    lines = [
        f"{name:<24} {value:10.5g} ± {result.standard_deviations[name]:.2g}" for name, value in result.values.items()
    ]
    lines += [
        f"position residual        {1e3 * result.position_residual:10.4g} mm",
        f"rotation residual        {result.rotation_residual:10.4g} rad",
        f"residuals / stated noise {result.estimate.residual_ratio:10.3g}",
        f"step of the rollouts     {1e3 * step:10.4g} ms",
        f"iterations               {result.estimate.iterations:10d} in {result.seconds:.2f} s",
        result.message,
    ]
    return "\n".join(lines)


def content(result: IdentificationResult, unknowns: list[Unknown], step: float) -> dict[str, Any]:
    """The result for machines, with the step of its rollouts [s]; a deviation that is infinite is null."""
    import math

    return {
        "status": result.status.value,
        "message": result.message,
        "parameters": {
            item.name: {
                "value": result.values[item.name],
                "standard_deviation": _finite(result.standard_deviations[item.name]),
                "bounds": [item.lower, item.upper],
                "identifiable": item.name not in result.unidentifiable,
            }
            for item in unknowns
        },
        "position_residual_m": result.position_residual,
        "rotation_residual_rad": result.rotation_residual,
        "residual_ratio": result.estimate.residual_ratio if math.isfinite(result.estimate.residual_ratio) else None,
        "explained": result.explained,
        "step_s": step,
        "iterations": result.estimate.iterations,
        "seconds": result.seconds,
    }


def _finite(value: float) -> float | None:
    import math

    return value if math.isfinite(value) else None


def _config(options: argparse.Namespace) -> IdentificationConfig:
    import dataclasses

    from morphit_ros.neural.identification import IdentificationConfig

    config = IdentificationConfig()
    if options.soap:
        from morphit_ros.neural.identification.soap import SOAP_CONFIG

        config = SOAP_CONFIG
    if options.noise:
        config = dataclasses.replace(config, position_noise=options.noise[0], rotation_noise=options.noise[1])
    return dataclasses.replace(config, window=options.window, corrections=options.corrections)


def _unknown(word: str) -> Unknown:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.identification import Unknown

    name, separator, numbers = word.partition("=")
    if not separator:
        if name.partition(":")[0] not in _BOUNDS:
            raise InvalidInputError(
                "--unknown", word, "NAME=START:LOWER:UPPER", f"Bounds are known for {', '.join(_BOUNDS)}."
            )
        return Unknown(name, *_BOUNDS[name.partition(":")[0]])
    try:
        start, lower, upper = (float(part) for part in numbers.split(":"))
    except ValueError:
        raise InvalidInputError("--unknown", word, "NAME=START:LOWER:UPPER with three numbers") from None
    return Unknown(name, start, lower, upper)


def _experiments(options: argparse.Namespace) -> list[Experiment]:
    from morphit_ros.errors import InvalidInputError

    if options.soap:
        from morphit_ros.neural.identification.soap import soap_experiment

        if len(options.tracks) != 1:
            raise InvalidInputError("TRACK", f"{len(options.tracks)} of them", "one folder with --soap")
        return [soap_experiment(options.tracks[0], options.start or "known")]
    if options.pusher and len(options.tracks) != 1:
        raise InvalidInputError("TRACK", f"{len(options.tracks)} of them", "one with --pusher")
    body = _body(options)
    return [_experiment(options, body, track) for track in options.tracks]


def _body(options: argparse.Namespace) -> ContactBody:
    from morphit_ros.errors import InvalidInputError

    if options.body:
        from morphit_ros.neural.published import load_published_body

        return load_published_body(options.body)
    if not options.field:
        raise InvalidInputError("object", "neither --field nor --body nor --soap", "one of them")
    from morphit_ros.commands.neural_field import load_body

    _, body = load_body(options.field, 1.0 if options.mass is None else options.mass)
    return body


def _experiment(options: argparse.Namespace, body: ContactBody, file: str) -> Experiment:
    import math

    import numpy as np

    from morphit_ros.errors import InvalidInputError
    from morphit_ros.geometry.transforms import make_transform
    from morphit_ros.neural.contact.parameters import largest_implicit_step
    from morphit_ros.neural.contact.shapes import HalfSpace, Sphere
    from morphit_ros.neural.dynamics.world import Obstacle, World
    from morphit_ros.neural.identification import Experiment, SimulatedMotion, read_track
    from morphit_ros.neural.identification.tracks import resampled_positions

    track = read_track(Path(file))
    if options.frame != "body":
        track = track.moved_frame(body.center_of_mass)
    obstacles = [Obstacle(HalfSpace(), make_transform(translation=[0.0, 0.0, options.table or 0.0]), name="table")]
    step = min(_STEP, largest_implicit_step(body.size)) if options.step is None else options.step
    if not (math.isfinite(step) and step > 0.0):
        raise InvalidInputError("--step", step, "a positive number [s]")
    if options.pusher:
        try:
            radius = float(options.pusher[1])
        except ValueError:
            raise InvalidInputError("--pusher", options.pusher[1], "a radius [m]") from None
        times = np.arange(track.times[0], track.times[-1] + step, step)
        positions = resampled_positions(read_track(options.pusher[0]), times)
        obstacles.append(Obstacle(Sphere(radius), positions=positions, name="pusher"))
    world = World([body], obstacles, _laws(options.set or []), step=step)
    return Experiment(SimulatedMotion(world), (track,), None, options.start or "velocity_unknown")


def _laws(words: list[str]) -> Any:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.contact.parameters import ContactParameters

    values = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            values[name] = float(number)
        except ValueError:
            raise InvalidInputError("--set", word, "NAME=VALUE with a number") from None
    return ContactParameters.from_flat(values)
