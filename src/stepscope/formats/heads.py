"""How files start that are given in place of a profile."""

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""What Git leaves of a large file that it has not fetched."""

CRLF_START = b"\r\n"
"""An XSpace starts with a line feed, the tag of its first plane; a transfer as text makes two bytes of it."""
