class K(KeyboardInterrupt):
    pass


raise K("k")
