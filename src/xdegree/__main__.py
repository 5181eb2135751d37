"""``python -m xdegree`` is the command ``xdegree``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
