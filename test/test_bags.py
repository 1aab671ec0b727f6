"""Recordings: whole, cut off anywhere, on a full disk, damaged, and as other programs read them."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcap")

from mcap.writer import CompressionType, Writer

from morphit_ros import bags
from morphit_ros.bags import (
    ABOUT,
    PARAMETERS,
    BagWriter,
    Channel,
    LastSeconds,
    Recorded,
    check_recording,
    read_bag,
    unfinished,
)
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

TEXT = Channel("/text", "std_msgs/msg/String", "string data\n", "- depth: 1\n  durability: transient_local\n")
NUMBER = Channel("/space/number", "std_msgs/msg/UInt8", "uint8 data\n")


def recorded(count: int, seed: int, size: int = 1000) -> list[Recorded]:
    """Messages of two topics that cannot be compressed."""
    rng = np.random.default_rng(seed)
    return [
        Recorded((TEXT, NUMBER)[k % 2].topic, 1_000 + 7 * k, 900 + 7 * k, rng.bytes(int(rng.integers(1, size))))
        for k in range(count)
    ]


def write(path: Path, messages: list[Recorded]) -> BagWriter:
    bag = BagWriter(str(path), {"namespace": "/space"})
    for channel in (TEXT, NUMBER):
        bag.add(channel)
    bag.tell(PARAMETERS, {"/space/node": '{"a": 1}'})
    for message in messages:
        bag.write(message)
    return bag


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path, report = tmp_path / "new" / "r.mcap", tmp_path / "report.json"
    report.write_text("{}")
    messages = recorded(5000, 11)
    bag = write(path, messages)
    assert unfinished(path).exists() and not path.exists()
    bag.attach(report)
    bag.close()
    assert path.exists() and not unfinished(path).exists()
    found = read_bag(path)
    assert list(found.messages()) == messages
    assert found.channels == {channel.topic: channel for channel in (TEXT, NUMBER)}
    assert found.counts == {TEXT.topic: 2500, NUMBER.topic: 2500}
    assert (found.start, found.end, found.problem) == (1000, 1000 + 7 * 4999, "")
    assert found.about == {"namespace": "/space"} and found.parameters == {"/space/node": '{"a": 1}'}
    assert found.attachments == {"report.json": b"{}"}


@pytest.mark.parametrize("share", [0.3, 0.62, 0.97, 1.0])
def test_a_file_that_was_cut_off_is_read_up_to_its_last_chunk(share: float, tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    messages = recorded(20_000, 12)
    write(path, messages).close()
    content = path.read_bytes()
    # With all but the last byte the index and the end are damaged only.
    path.write_bytes(content[: min(int(share * len(content)), len(content) - 1)])
    found = read_bag(path)
    taken = list(found.messages())
    assert taken == messages[: len(taken)]
    # A chunk holds 1 MiB at least, and no more than one is lost.
    per_message = len(content) / len(messages)
    assert len(taken) > share * len(messages) - 1.1 * bags._CHUNK_BYTES / per_message
    assert "cut off" in found.problem or share == 1.0
    assert sum(found.counts.values()) == len(taken)


def test_a_crash_leaves_what_was_flushed(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    messages = recorded(100, 13)
    bag = write(path, messages)
    bag.flush()
    # Whoever writes is gone without a word: the file as it is on the disk now.
    found = read_bag(unfinished(path))
    assert list(found.messages()) == messages and found.about == {"namespace": "/space"}
    with pytest.raises(InvalidInputError, match=r"without a r\.mcap\.part beside it"):
        check_recording("FILE", str(path))
    bag.leave()
    check_recording("FILE", str(path))


def test_a_full_disk_leaves_whole_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.mcap"
    messages = recorded(20_000, 14)
    bag = write(path, [])
    file = bag._stream._file

    class Disk:
        """Takes 3.5 MB, and of the write that meets its end a part, as a real one does."""

        left = 3_500_000

        def write(self, data: memoryview) -> int:
            taken = min(self.left, len(data))
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left -= taken
            return file.write(data[:taken])

        def __getattr__(self, name: str) -> object:
            return getattr(file, name)

    monkeypatch.setattr(bag._stream, "_file", Disk())
    with pytest.raises(OSError, match="No space left"):
        for message in messages:
            bag.write(message)
    bag.leave()
    found = read_bag(path)
    taken = list(found.messages())
    assert 3000 < len(taken) < 7000 and taken == messages[: len(taken)]
    # It ends at the end of a record, not within one.
    assert found.problem.endswith("EndOfFile") and path.stat().st_size <= 3_500_000


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError):
        read_bag(tmp_path / "none.mcap")
    path = tmp_path / "r.mcap"
    path.write_bytes(b"#ROSBAG V2.0\n" + bytes(1000))
    with pytest.raises(InvalidInputError, match="no MCAP file"):
        read_bag(path)
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start(profile="ros1")
        writer.finish()
    with pytest.raises(InvalidInputError, match="profile 'ros1'"):
        read_bag(path)
    path.unlink()
    write(path, []).close()
    with pytest.raises(InvalidInputError, match="no message"):
        read_bag(path)
    with pytest.raises(InvalidInputError, match=r"ends in \.mcap"):
        check_recording("FILE", "r.bag")


def test_a_chunk_that_swells_is_refused_before_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.mcap"
    write(path, [Recorded("/text", 1, 1, bytes(50_000_000))]).close()
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(bags, "MOST_CHUNK_BYTES", 40_000_000)
    with pytest.raises(InvalidInputError, match="a chunk of 47 MiB"):
        read_bag(path)


def test_damage_in_the_middle_keeps_what_is_before(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    messages = recorded(20_000, 15)
    write(path, messages).close()
    rng = np.random.default_rng(16)
    content = path.read_bytes()
    for _ in range(20):
        damaged = bytearray(content)
        for place in rng.integers(len(content) // 3, 2 * len(content) // 3, 50):
            damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        found = read_bag(path)
        taken = list(found.messages())
        assert found.problem and taken == messages[: len(taken)] and len(taken) > len(messages) / 4


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("chunked", [True, False])
def test_files_of_other_writers_are_read(compression: CompressionType, chunked: bool, tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream, compression=compression, use_chunking=chunked)
        writer.start(profile="ros2")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        channel = writer.register_channel("/text", "cdr", schema)
        writer.add_metadata("rosbag2", {"ROS_DISTRO": "jazzy"})
        writer.add_message(channel, 5, b"later", 5)
        writer.add_message(channel, 3, b"first", 3)
        writer.finish()
    found = read_bag(path)
    order = [b"first", b"later"] if chunked else [b"later", b"first"]
    assert [message.data for message in found.messages()] == order
    assert found.channels["/text"] == Channel("/text", "std_msgs/msg/String", "string data")
    assert found.about == {} and ABOUT not in found.parameters


SECOND = 1_000_000_000


def kept_after(messages: list[Recorded], seconds: float, most: int = 1 << 30) -> LastSeconds:
    kept = LastSeconds(seconds, {"namespace": "/space"}, most)
    for channel in (TEXT, NUMBER):
        kept.add(channel)
    kept.tell(PARAMETERS, {"/space/node": '{"a": 1}'})
    for message in messages:
        kept.write(message)
    return kept


def test_what_came_last_is_written_and_what_is_latched_however_old_it_is(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    # Two latched ones at the begin, and a number every tenth of a second for a minute.
    latched = [Recorded(TEXT.topic, (100 + k) * SECOND, 7 + k, bytes([k])) for k in range(2)]
    numbers = [Recorded(NUMBER.topic, 102 * SECOND + k * SECOND // 10, k, bytes([k % 256])) for k in range(600)]
    kept = kept_after([*latched, *numbers], 5.0)
    assert kept.seconds == pytest.approx(5.0) and kept.bytes_kept == 51
    assert kept.counts == {TEXT.topic: 2, NUMBER.topic: 600}
    kept.save(str(path)).close()
    found = read_bag(path)
    (first, *rest) = found.messages()
    # The newest of the topic, told as if it had come when the recording begins: there is no gap of a minute.
    assert (first.topic, first.data, first.published, first.received) == (TEXT.topic, b"\x01", 8, rest[0].received)
    assert rest == numbers[-51:]
    assert found.duration == pytest.approx(5.0)
    assert found.about == {"namespace": "/space"} and found.parameters == {"/space/node": '{"a": 1}'}
    # It goes on being kept.
    kept.write(Recorded(TEXT.topic, numbers[-1].received + SECOND, 9, b"new"))
    kept.save(str(path)).close()
    assert [m.data for m in read_bag(path).messages() if m.topic == TEXT.topic] == [b"\x01", b"new"]


def test_what_is_kept_has_a_bound(tmp_path: Path) -> None:
    messages = recorded(5000, 15)
    kept = kept_after(messages, 3600.0, most=100_000)
    assert 99_000 < kept.bytes_kept <= 100_000
    # What another thread writes does not change while more comes.
    copy = kept.copy()
    for message in recorded(5000, 16):
        kept.write(Recorded(message.topic, message.received + 10**6, message.published, message.data))
    path = tmp_path / "r.mcap"
    copy.save(str(path)).close()
    found = [message for message in read_bag(path).messages() if message.topic == NUMBER.topic]
    assert found == [message for message in messages if message.topic == NUMBER.topic][-len(found) :] and found
    # One that is larger than all that may be kept is kept alone.
    alone = kept_after([Recorded(TEXT.topic, 1, 1, bytes(200_000)), Recorded(TEXT.topic, 2, 2, bytes(300_000))], 9.0, 1)
    assert alone.bytes_kept == 300_000


def test_nothing_that_came_is_a_file_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    LastSeconds(5.0, {"namespace": "/"}).save(str(path)).close()
    with pytest.raises(InvalidInputError, match="no message"):
        read_bag(path)
