"""What is known of each entry of the metadata maps."""

cpdef enum:
    # Columns of `walk_metadata`'s `entries`, one row a metadata entry.
    META_ID
    META_NAME
    META_DISPLAY
    META_BAD_AT
    META_BAD_CODE
    META_WIDTH
