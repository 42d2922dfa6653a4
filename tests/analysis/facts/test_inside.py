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
        (None, "np.random.choice", "shuffle=False"),
        (None, "rng.choice", "prepares all candidates"),
        (None, "random.choice", "prepares all candidates"),
        ("random.py:430 sample", "random.sample", "deque"),
        (None, "self.memory.sample", ""),
        (None, "np.random.randn", "default_rng"),
        (None, "torch.randn", ""),
        ("pandas/core/frame.py:1500 iterrows", "", "whole columns"),
        ("pandas/core/apply.py:1063 apply_series_generator", "frame.apply", "whole columns"),
        ("pandas/core/reshape/concat.py:380 concat", "pd.concat", "collect parts"),
        ("pandas/core/groupby/ops.py:900 get_group", "", ".indices"),
        ("pandas/io/parsers/c_parser_wrapper.py:230 read", "pd.read_csv", "read it once"),
        ("pandas/core/indexes/base.py:6539 _get_indexer_strict", "", "take what it looks up"),
        (f"{NUMPY.split('/')[0]}/lib/_arraysetops_impl.py:340 _unique1d", "np.unique", "bincount"),
        (None, "np.add.at", "bincount"),
        (None, "torch.tensor", "number by number"),
        (None, "self.ids.index", "in a dict"),
        (None, "itertools.groupby", ""),
        ("scipy/sparse/_compressed.py:900 _insert_many", "", "coo_array"),
        ("glob.py:20 glob", "glob.glob", "list the files once"),
        ("subprocess.py:500 run", "subprocess.run", "starts a process"),
        ("torch/nn/modules/module.py:1700 apply", "net.apply", ""),
        ("json/encoder.py:260 _iterencode", "json.dump", "every N steps"),
        ("json/decoder.py:353 raw_decode", "json.loads", "parse that text once"),
        (None, "os.fsync", "every N steps"),
        ("jax/_src/lib/__init__.py:132 _xla_gc_callback", "", "collects garbage"),
        (None, "gc.collect", "collects garbage"),
        (None, "torch.log", ""),
        (None, "torch.randperm", "torch.randint"),
        ("/home/me/.pyenv/lib/python3.11/zipfile.py:1012 _read1", "", "unpack it once"),
        ("zipfile.py:1799 write", "np.savez_compressed", "it packs and writes"),
        (f"{NUMPY.split('/')[0]}/lib/_npyio_impl.py:790 _savez", "np.savez_compressed", "it packs and writes"),
        ("gzip.py:300 read", "np.load", "unpack it once"),
        ("tensorflow/python/eager/execute.py:53 quick_execute", "tf.summary.histogram", "every N steps"),
        (f"{NUMPY}/fromnumeric.py:3 histogram", "np.histogram", ""),
        ("torch/distributed/distributed_c10d.py:3000 _object_to_tensor", "dist.all_gather_object", "all_reduce"),
        (None, "", ""),
    ],
)
def test_work_of_a_library(inside: str | None, called: str, said: str) -> None:
    work = work_in(inside, called)

    assert (said in work.action) if said and work else (not said and work is None)
