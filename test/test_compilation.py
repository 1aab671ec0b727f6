"""People are told of kernels that are compiled, and of nothing else."""

from __future__ import annotations

from numba import njit

from morphit_ros.compilation import telling_of_compilation


def test_compiled_kernels_are_told_of_once() -> None:
    @njit
    def twice(x: float) -> float:
        return 2.0 * x

    said: list[str] = []
    with telling_of_compilation(said.append):
        assert said == []
        assert (twice(1.0), twice(1), twice(2.0)) == (2.0, 2.0, 4.0)
    assert len(said) == 1
    assert "compiling" in said[0]
    with telling_of_compilation(said.append):
        twice(3.0)
    assert len(said) == 1, "what is compiled already is not told of"
    twice(1 + 2j)
    assert len(said) == 1, "what is compiled outside is not told of"
