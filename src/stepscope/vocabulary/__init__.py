"""What frameworks call things: the one place for each framework where names of its events stand.

A module holds the names of one framework or one kind of thing: `torch`, `tensorflow`, `tf_data`, `jax`, `xla`,
`python`, `devices` (runtimes, copies), `gpu_kernels`, `collectives`.  Each has up to three parts:

- `KindRule`s say of which kind an event is; readers of files ask for these.
- `NameTable`s say which traits a name has (`traits.py`); analysis asks for these through `lookup.has_trait`.
- functions take names apart: `op_names`, `kernel_names`, `xla.instruction_name`, `tf_data.last_part`.

Where a framework renames an op, its module here changes and nothing else.  Names of stats stand in
`model/stat_names.py`.
"""
