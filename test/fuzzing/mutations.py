"""Damaged variants of a file, by seed."""

import re

import numpy as np

_TOKEN = re.compile(rb'[^\s<>"=/{}\[\],:]+')
_NUMBER = re.compile(rb"^[-+]?\d[\d.eE+-]*$")
_NUMBERS = [
    *(b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-320", b"-0", b"0", b"-1", b"1", b"3", b"99999999999999999999"),
    *(b"4294967295", b"2147483648", b"-2147483649", b"9" * 5000, b"0x10", b"1e", b"", b"1,5", b"65535", b"1e10"),
]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """`data` with one to four random damages."""
    for _ in range(int(rng.integers(1, 5))):
        data = _DAMAGES[int(rng.integers(len(_DAMAGES)))](data, rng)
    return data


def _flip_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if changed:
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


def _overwrite_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Four bytes somewhere become an extreme integer or float, as a count or an offset in a binary file."""
    extremes = [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\0\0\0\x80"]
    place = int(rng.integers(max(len(data) - 4, 1)))
    return data[:place] + extremes[int(rng.integers(len(extremes)))] + data[place + 4 :]


def _truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _range(data, rng)
    return data[:start] + data[end:]


def _double(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _range(data, rng)
    return data[:end] + data[start:end] * int(rng.integers(1, 4)) + data[end:]


def _insert_noise(data: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(len(data) + 1))
    return data[:place] + rng.bytes(int(rng.integers(1, 30))) + data[place:]


def _replace_number(data: bytes, rng: np.random.Generator) -> bytes:
    return _replace_token(data, rng, lambda token: bool(_NUMBER.match(token)), _NUMBERS)


def _swap_tokens(data: bytes, rng: np.random.Generator) -> bytes:
    """A word takes the place of another: tags, attributes, references."""
    words = [match.group() for match in _TOKEN.finditer(data)]
    return _replace_token(data, rng, lambda token: True, words or [b""])


def _drop_token(data: bytes, rng: np.random.Generator) -> bytes:
    return _replace_token(data, rng, lambda token: True, [b"", b" "])


def _swap_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.integers(len(lines), size=2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _replace_token(data, rng, wanted, replacements) -> bytes:
    tokens = [match.span() for match in _TOKEN.finditer(data) if wanted(match.group())]
    if not tokens:
        return data
    start, end = tokens[int(rng.integers(len(tokens)))]
    return data[:start] + replacements[int(rng.integers(len(replacements)))] + data[end:]


def _range(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(start + int(rng.integers(1, 200)), len(data))


_DAMAGES = [
    *(_flip_bytes, _overwrite_number, _truncate, _cut, _double, _insert_noise),
    *(_replace_number, _replace_number, _swap_tokens, _swap_tokens, _drop_token, _swap_lines),
]
