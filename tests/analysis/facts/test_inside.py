"""What library a statement spends its time in, and whether a cheaper form of that is known."""

from __future__ import annotations

import pytest

from stepscope.analysis.facts.inside import work_in

NUMPY = "numpy/_core"


@pytest.mark.parametrize(
    ("inside", "called", "said"),
    [
        (f"{NUMPY}/einsumfunc.py:1244 einsum", "np.einsum", "optimize=True"),
        (f"{NUMPY}/numeric.py:980 tensordot", "np.einsum", ""),  # with a path it is products of matrices
        ("torch/functional.py:222 einsum", "torch.einsum", ""),
        ("scipy/sparse/_compressed.py:651 _minor_index_fancy", "", "tocsr"),
        ("scipy/sparse/_compressed.py:399 _matmul_multivector", "", ""),
        ("h5py/_hl/dataset.py:804 __getitem__", "", "chunks="),
        (f"{NUMPY}/fromnumeric.py:48 _wrapfunc", "np.argsort", "argpartition"),
        (None, "rows.append", ""),  # of a list
        (None, "rows.copy", ""),  # of an array, not of the module
        (None, "copy.deepcopy", "deepcopy"),
        (None, "np.append", "copies the whole array"),
        (None, "", ""),
    ],
)
def test_work_of_a_library(inside: str | None, called: str, said: str) -> None:
    work = work_in(inside, called)

    assert (said in work.action) if said and work else (not said and work is None)
