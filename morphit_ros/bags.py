"""Recordings of topics as MCAP files of the profile ros2, as rosbag2 writes and Foxglove reads them. Knows no ROS.

A file is written under a name that ends in ``.part`` and gets its own at the end, in chunks that are compressed as they
are full: what a crash or a full disk leaves is read up to its last chunk.
"""

from __future__ import annotations

import fcntl
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

from morphit_ros.budgets import MOST_CHUNK_BYTES, MOST_KEPT_BYTES
from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

SUFFIX, UNFINISHED = ".mcap", ".part"
# Metadata record of this package in a file: what was recorded, with which versions and arguments.
ABOUT, PARAMETERS = "morphit", "morphit parameters"
_CHUNK_BYTES = 1 << 20
# A byte of LZ4 stands for no more than this.
_MOST_SHRINKING_LZ4 = 255
# Latched messages of one topic that are kept however old they are: of static frames each publisher has one of its own.
_LATCHED, _STATIC_FRAMES = 1, 50


@dataclass(frozen=True)
class Channel:
    """A recorded topic.

    Attributes:
        topic: absolute name.
        type: as ``sensor_msgs/msg/JointState``.
        definition: of the type and all within it, as ros2msg text.
        qualities: of its publishers, as YAML text of rosbag2; empty: not known.
    """

    topic: str
    type: str
    definition: str
    qualities: str = ""


@dataclass(frozen=True)
class Recorded:
    """A recorded message.

    Attributes:
        topic: absolute name.
        received, published: when, by the wall clocks of who received and who published it [ns].
        data: the message, CDR.
    """

    topic: str
    received: int
    published: int
    data: bytes


def unfinished(path: Path) -> Path:
    """The name of a file while it is recorded."""
    return path.with_name(path.name + UNFINISHED)


def check_recording(name: str, file: str) -> None:
    """Refuse a file that cannot be recorded to.

    Args:
        name: of the option or argument.
        file: as it was given.

    Raises:
        InvalidInputError: another suffix, a place that cannot be written, or what a recording that was cut off left.
    """
    from morphit_ros.resources import check_writable

    path = Path(file)
    if path.suffix != SUFFIX:
        raise InvalidInputError(name, repr(file), f"a name that ends in {SUFFIX}")
    if unfinished(path).exists():
        remedy = "Replay it or move it away; or it is being recorded now."
        raise InvalidInputError(name, repr(file), f"a name without a {unfinished(path).name} beside it", remedy)
    check_writable(name, file)


class BagWriter:
    """Writes a recording.

    Args:
        file: its name; one that is there is replaced at the end.
        about: what is known of it at the start.

    Attributes:
        counts: topic → messages written so far.

    Raises:
        InvalidInputError: as of `check_recording`.
        MissingDependencyError: the library mcap is not installed.
    """

    def __init__(self, file: str, about: Mapping[str, str]) -> None:
        with needed_for("recordings"):
            from mcap.writer import CompressionType, Writer

        check_recording("file", file)
        self.path = Path(file)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = _WholeWrites(unfinished(self.path))
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        # Half of the library has no types.
        self._writer: Any = Writer(cast("IO[bytes]", self._stream), _CHUNK_BYTES, CompressionType.ZSTD)
        self._writer.start(profile="ros2", library=f"morphit_ros {about.get('morphit_ros', '')}".strip())
        self.tell(ABOUT, about)

    @property
    def bytes_written(self) -> int:
        """So far; what is in memory yet is not counted."""
        return self._stream.tell()

    def tell(self, name: str, content: Mapping[str, str]) -> None:
        """Write a record of metadata.

        Raises:
            OSError: it could not be written.
        """
        self._writer.add_metadata(name, dict(content))

    def add(self, channel: Channel) -> None:
        """Write that messages of a topic follow; once a topic.

        Raises:
            OSError: as of `write`.
        """
        self.counts[channel.topic] = 0
        if channel.type not in self._schemas:
            definition = channel.definition.encode()
            self._schemas[channel.type] = self._writer.register_schema(channel.type, "ros2msg", definition)
        self._channels[channel.topic] = self._writer.register_channel(
            channel.topic, "cdr", self._schemas[channel.type], {"offered_qos_profiles": channel.qualities}
        )

    def write(self, message: Recorded) -> None:
        """Write a message of a topic that was added.

        Raises:
            OSError: a chunk could not be written; the file ends with the one before.
        """
        number = self.counts[message.topic] = self.counts[message.topic] + 1
        channel = self._channels[message.topic]
        self._writer.add_message(channel, message.received, message.data, message.published, number)

    def flush(self) -> None:
        """Write what is in memory as a chunk.

        Raises:
            OSError: as of `write`.
        """
        self._writer.flush()

    @property
    def closed(self) -> bool:
        """Whether the file has its name."""
        return self._stream.closed

    def attach(self, file: Path) -> None:
        """Put a small file along.

        Raises:
            OSError: it could not be read or written.
        """
        made = file.stat().st_mtime_ns
        self._writer.add_attachment(made, made, file.name, "application/octet-stream", file.read_bytes())

    def close(self) -> None:
        """Write the rest and the index, and give the file its name.

        Raises:
            OSError: they could not be written; the file ends with the last whole chunk.
        """
        try:
            self._writer.finish()
        finally:
            self.leave()

    def leave(self) -> None:
        """Give the file its name as it is, after an error: whole chunks without an index."""
        if not self._stream.closed:
            self._stream.close()
            unfinished(self.path).replace(self.path)


class LastSeconds:
    """Keeps what came last in memory, for when there is a reason to write it.

    Of latched topics the newest message is kept however old it is: without the robot's description nothing is shown.

    Args:
        seconds: how long messages are kept [s].
        about: what is known of the recording at its start.
        most: bytes of messages that are kept; with more the time is shorter.

    Attributes:
        counts: topic → messages that came so far.
        bytes_kept: in memory now.
    """

    def __init__(self, seconds: float, about: Mapping[str, str], most: int = MOST_KEPT_BYTES) -> None:
        self._length, self._most = int(1e9 * seconds), most
        self._told: list[tuple[str, dict[str, str]]] = [(ABOUT, dict(about))]
        self._channels: dict[str, Channel] = {}
        self._messages: deque[Recorded] = deque()
        self._latched: dict[str, deque[Recorded]] = {}
        self.counts: dict[str, int] = {}
        self.bytes_kept = 0

    @property
    def seconds(self) -> float:
        """Between the oldest and the newest message that are kept, but for latched ones [s]."""
        return 1e-9 * (self._messages[-1].received - self._messages[0].received) if self._messages else 0.0

    def tell(self, name: str, content: Mapping[str, str]) -> None:
        """Keep a record of metadata."""
        self._told.append((name, dict(content)))

    def add(self, channel: Channel) -> None:
        """As `BagWriter.add`."""
        self._channels[channel.topic], self.counts[channel.topic] = channel, 0
        if "transient_local" in channel.qualities:
            count = _STATIC_FRAMES if channel.topic.endswith("tf_static") else _LATCHED
            self._latched[channel.topic] = deque(maxlen=count)

    def write(self, message: Recorded) -> None:
        """Keep a message of a topic that was added, received after those before; let go of what is too old."""
        self.counts[message.topic] += 1
        self._messages.append(message)
        self.bytes_kept += len(message.data)
        oldest = message.received - self._length
        while self._messages[0].received < oldest or (self.bytes_kept > self._most and len(self._messages) > 1):
            gone = self._messages.popleft()
            self.bytes_kept -= len(gone.data)
            if gone.topic in self._latched:
                self._latched[gone.topic].append(gone)

    def copy(self) -> LastSeconds:
        """What is kept now, for another thread to write."""
        made = LastSeconds(1e-9 * self._length, {}, self._most)
        made._told, made._channels, made.counts = list(self._told), dict(self._channels), dict(self.counts)
        made._messages, made.bytes_kept = self._messages.copy(), self.bytes_kept
        made._latched = {name: kept.copy() for name, kept in self._latched.items()}
        return made

    def save(self, file: str) -> BagWriter:
        """Write what is kept; older latched messages as if they had been received at its begin.

        Args:
            file: as of `BagWriter`.

        Returns:
            The writer, for what is put along before it is closed.

        Raises:
            InvalidInputError, MissingDependencyError: as of `BagWriter`.
            OSError: it could not be written; what could be has the file's name.
        """
        (_, about), *told = self._told
        bag = BagWriter(file, about)
        try:
            for name, content in told:
                bag.tell(name, content)
            within = {message.topic for message in self._messages}
            begin = self._messages[0].received if self._messages else 0
            before = [replace(old, received=begin or old.received) for kept in self._latched.values() for old in kept]
            for name in self._channels.keys() & within.union(old.topic for old in before):
                bag.add(self._channels[name])
            for message in (*before, *self._messages):
                bag.write(message)
        except OSError:
            bag.leave()
            raise
        return bag


class _WholeWrites:
    """A file that holds each write whole or not at all, and is locked by whoever writes it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._size = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: Any) -> int:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(self._size)
            self._file.seek(self._size)
            raise
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._file.close()


@dataclass
class Bag:
    """What a recording holds.

    Attributes:
        path: of the file.
        channels: topic → what is known of it.
        counts: topic → number of messages.
        about, parameters: metadata of this package; empty for recordings of other programs.
        attachments: name → bytes.
        start, end: when the first and the last message were received [ns].
        problem: why the file ends before its end; empty: it is whole.
    """

    path: Path
    channels: dict[str, Channel] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    attachments: dict[str, bytes] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    problem: str = ""

    @property
    def duration(self) -> float:
        """Of the recording [s]."""
        return (self.end - self.start) * 1e-9

    def messages(self) -> Iterator[Recorded]:
        """All messages in the order in which they were received."""
        for record in _records(self.path, Bag(self.path)):
            if isinstance(record, Recorded):
                yield record


def read_bag(file: str | Path) -> Bag:
    """Read what a recording holds, whole or cut off.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: it is none of the profile ros2, or holds no whole chunk.
        MissingDependencyError: the library mcap is not installed.
    """
    path = Path(file)
    if not path.is_file():
        raise ResourceNotFoundError(str(file), [str(path.absolute())])
    bag = Bag(path)
    for record in _records(path, bag):
        if isinstance(record, Recorded):
            bag.start = min(bag.start or record.received, record.received)
            bag.end = max(bag.end, record.received)
            bag.counts[record.topic] = bag.counts.get(record.topic, 0) + 1
        else:
            bag.channels[record.topic] = record
    if not bag.channels:
        remedy = f"({bag.problem})" if bag.problem else ""
        raise InvalidInputError(path.name, "no message", "a recording with at least one whole chunk", remedy)
    return bag


def _records(path: Path, bag: Bag) -> Iterator[Recorded | Channel]:
    """Channels and messages of a file up to its end or its first damage; the rest goes into `bag`.

    Raises:
        InvalidInputError: not MCAP, or of another profile.
    """
    with needed_for("recordings"):
        from mcap import records
        from mcap.stream_reader import StreamReader, breakup_chunk

    schemas: dict[int, Any] = {}
    topics: dict[int, Channel] = {}

    def taken(found: list[Any]) -> Iterator[Recorded | Channel]:
        messages = []
        for record in found:
            if isinstance(record, records.Schema):
                schemas[record.id] = record
            elif isinstance(record, records.Message):
                messages.append(record)
            elif record.id not in topics:
                schema = schemas[record.schema_id]
                definition = schema.data.decode() if schema.encoding == "ros2msg" else ""
                qualities = record.metadata.get("offered_qos_profiles", "")
                topics[record.id] = Channel(record.topic, schema.name, definition, qualities)
                yield topics[record.id]
        for record in sorted(messages, key=lambda record: record.log_time):
            yield Recorded(topics[record.channel_id].topic, record.log_time, record.publish_time, record.data)

    with path.open("rb") as stream:
        try:
            for record in StreamReader(stream, emit_chunks=True, record_size_limit=MOST_CHUNK_BYTES).records:
                match record:
                    case records.Header(profile=profile) if profile != "ros2":
                        raise InvalidInputError(path.name, f"profile {profile!r}", "an MCAP file of profile 'ros2'")
                    case records.Chunk():
                        _check_chunk(path, record)
                        yield from taken(breakup_chunk(record, validate_crc=True))
                    case records.Schema() | records.Channel() | records.Message():
                        yield from taken([record])
                    case records.Metadata(name=name, metadata=content):
                        known = {ABOUT: bag.about, PARAMETERS: bag.parameters}.get(name)
                        if known is not None:
                            known.update(content)
                    case records.Attachment(name=name, data=data):
                        bag.attachments[name] = data
                    case records.DataEnd():
                        return
        except InvalidInputError:
            raise
        # Whatever damaged bytes make decoders raise, what came before is kept.
        except Exception as error:
            if stream.tell() <= 8:
                raise InvalidInputError(path.name, "no MCAP file", "a recording of morphit record") from error
            reason, place = str(error) or type(error).__name__, stream.tell() / 2**20
            bag.problem = f"cut off or damaged after {place:.1f} MiB: {reason}"


def _check_chunk(path: Path, chunk: Any) -> None:
    """Refuse a chunk that takes too much memory, whatever it says of itself."""
    size = chunk.uncompressed_size
    if chunk.compression == "zstd":
        import zstandard

        size = max(size, zstandard.frame_content_size(chunk.data))
    elif chunk.compression == "lz4":
        size = max(size, _MOST_SHRINKING_LZ4 * len(chunk.data))
    if size > MOST_CHUNK_BYTES:
        raise InvalidInputError(path.name, f"a chunk of {size >> 20} MiB", f"at most {MOST_CHUNK_BYTES >> 20} MiB")
