"""The names that frameworks give to things, in one place per framework.

A module holds the names of one framework or one subject: `torch`, `tensorflow`, `tf_data`, `jax`, `xla`, `python`,
`devices` (runtimes, copies), `gpu_kernels`, `collectives`.  Each has up to three parts:

- `KindRule`s give the kind of an event; the readers of files use them.
- `NameTable`s give the traits of a name (`traits.py`); the analysis uses them through `lookup.has_trait`.
- Functions parse names: `op_names`, `kernel_names`, `xla.instruction_name`, `tf_data.last_part`.

If a framework renames an op, only its module here changes.  The names of stats are in `model/stat_names.py`.
"""
