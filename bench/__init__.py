"""How fast Stepscope is beside XProf and xprof-rs, on the same large profiles.  Run `python -m bench`."""
