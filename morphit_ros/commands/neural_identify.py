"""`morphit neural identify`: friction, mass and inertia from a track.

What of an object fits the way it was seen to move on a table. Tracks: CSV with the header t,x,y,z,qx,qy,qz,qw [s, m];
or, with --soap, the authors' folder with soap_pose_track.csv and bluesoap.npz.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from morphit_ros.commands.options import add_config, add_settings, given_values, read_config, settings
from morphit_ros.commands.output_files import ResultFiles, add_json, finite_or_none, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

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


@dataclass(frozen=True)
class ExperimentConfig(Config):
    """How the tracks were observed, and how they are predicted."""

    mass: float = parameter(1.0, "Of the object, with --field [kg]", minimum=1e-9, maximum=1e9)
    frame: str = parameter(
        "field", "What the track follows: the field's frame or the centre of mass", choices=("field", "body")
    )
    table: float = parameter(0.0, "Height of the table [m]")
    start: str = parameter(
        "velocity_unknown",
        "What of the first state is certain",
        choices=("known", "velocity_unknown", "unknown"),
    )
    step: float = parameter(_STEP, "Of the rollouts [s]", minimum=1e-7, maximum=10.0)
    noise: tuple[float, ...] = parameter((0.001, 0.02), "Of the tracks [m], [rad]", minimum=1e-9, length=2)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.neural.identification.identification_config import IdentificationConfig

    parser.add_argument("tracks", nargs="+", metavar="TRACK", help="one file for each observed motion")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--field", metavar="FILE", help="density field, written by 'morphit neural train'")
    source.add_argument("--body", metavar="FILE", help="sampled body in the authors' form (bunny.npz)")
    source.add_argument(
        "--soap", action="store_true", help="TRACK is the authors' folder: their soap, as they set it up"
    )
    add_config(parser, ExperimentConfig, "mass")
    parser.add_argument(
        "--unknown", action="append", metavar="NAME[=START:LOWER:UPPER]",
        help="friction, mass_scale, inertia_scale, spring ... repeatable (default: friction)",
    )  # fmt: skip
    add_settings(parser, "contact")
    add_config(parser, ExperimentConfig, "frame", "table")
    parser.add_argument(
        "--pusher", nargs=2, metavar=("TRACK", "RADIUS"), help="a ball that was moved along a track, for one TRACK"
    )
    add_config(parser, ExperimentConfig, "start", none="velocity_unknown; with --soap known")
    add_config(parser, ExperimentConfig, "step", none="0.01, less for objects under 10 cm")
    add_config(parser, ExperimentConfig, "noise")
    add_config(parser, IdentificationConfig, "window", "corrections")
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.neural.identification import SimulatedMotion, identify

    _refuse_foreign_options(options)
    motions, config = read_config(options, ExperimentConfig), _config(options)
    unknowns = [_unknown(word) for word in options.unknown or ["friction"]]
    experiments = _experiments(options, motions)
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
    with ResultFiles() as files:
        files.json(numbers, options.json)
    return 0 if result.success else 1


def _refuse_foreign_options(options: argparse.Namespace) -> None:
    """Refuse what would not be heard."""
    from morphit_ros.errors import InvalidInputError

    for source, names in _FOREIGN.items():
        for name in names:
            value = getattr(options, name)
            if getattr(options, source) and value not in (None, []):
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
    return {
        "status": result.status.value,
        "message": result.message,
        "parameters": {
            item.name: {
                "value": result.values[item.name],
                "standard_deviation": finite_or_none(result.standard_deviations[item.name]),
                "bounds": [item.lower, item.upper],
                "identifiable": item.name not in result.unidentifiable,
            }
            for item in unknowns
        },
        "position_residual_m": result.position_residual,
        "rotation_residual_rad": result.rotation_residual,
        "residual_ratio": finite_or_none(result.estimate.residual_ratio),
        "step_s": step,
        "iterations": result.estimate.iterations,
        **plain(result, "explained", "seconds"),
    }


def _config(options: argparse.Namespace) -> IdentificationConfig:
    from morphit_ros.neural.identification import IdentificationConfig

    more: dict[str, Any] = {}
    if options.soap:
        from morphit_ros.neural.identification.soap import SOAP_CONFIG

        more = SOAP_CONFIG.to_flat()
    noise = given_values(options, ExperimentConfig).get("noise")
    if noise:
        more["position_noise"], more["rotation_noise"] = noise
    return read_config(options, IdentificationConfig, more)


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


def _experiments(options: argparse.Namespace, motions: ExperimentConfig) -> list[Experiment]:
    from morphit_ros.errors import InvalidInputError

    if options.soap:
        from morphit_ros.neural.identification.soap import soap_experiment

        if len(options.tracks) != 1:
            raise InvalidInputError("TRACK", f"{len(options.tracks)} of them", "one folder with --soap")
        return [soap_experiment(options.tracks[0], options.start or "known")]
    if options.pusher and len(options.tracks) != 1:
        raise InvalidInputError("TRACK", f"{len(options.tracks)} of them", "one with --pusher")
    body = _body(options, motions.mass)
    return [_experiment(options, motions, body, track) for track in options.tracks]


def _body(options: argparse.Namespace, mass: float) -> ContactBody:
    from morphit_ros.errors import InvalidInputError

    if options.body:
        from morphit_ros.neural.published import load_published_body

        return load_published_body(options.body)
    if not options.field:
        raise InvalidInputError("object", "neither --field nor --body nor --soap", "one of them")
    from morphit_ros.commands.neural_field import load_body

    _, body = load_body(options.field, mass)
    return body


def _experiment(options: argparse.Namespace, motions: ExperimentConfig, body: ContactBody, file: str) -> Experiment:
    import numpy as np

    from morphit_ros.errors import InvalidInputError
    from morphit_ros.geometry.transforms import make_transform
    from morphit_ros.neural.contact.parameters import ContactParameters, largest_implicit_step
    from morphit_ros.neural.contact.shapes import ContactHalfSpace, ContactSphere
    from morphit_ros.neural.dynamics.world import Obstacle, World
    from morphit_ros.neural.identification import Experiment, SimulatedMotion, read_track
    from morphit_ros.neural.identification.experiments import StartKnowledge
    from morphit_ros.neural.identification.tracks import resampled_positions

    track = read_track(Path(file))
    if motions.frame == "field":
        track = track.moved_frame(body.center_of_mass)
    obstacles = [Obstacle(ContactHalfSpace(), make_transform(translation=[0.0, 0.0, motions.table]), name="table")]
    step = min(_STEP, largest_implicit_step(body.size)) if options.step is None else motions.step
    if options.pusher:
        try:
            radius = float(options.pusher[1])
        except ValueError:
            raise InvalidInputError("--pusher", options.pusher[1], "a radius [m]") from None
        times = np.arange(track.times[0], track.times[-1] + step, step)
        positions = resampled_positions(read_track(options.pusher[0]), times)
        obstacles.append(Obstacle(ContactSphere(radius), positions=positions, name="pusher"))
    world = World([body], obstacles, ContactParameters.from_flat(settings(options, ContactParameters)), step=step)
    return Experiment(SimulatedMotion(world), (track,), None, cast(StartKnowledge, motions.start))
