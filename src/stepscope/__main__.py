"""`python -m stepscope`: the command line."""

from stepscope.cli.start import main

if __name__ == "__main__":
    main()
