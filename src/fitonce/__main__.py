"""``python -m fitonce`` is the command line program."""

from .cli import main

if __name__ == "__main__":
    main()
