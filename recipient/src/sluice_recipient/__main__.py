"""``python -m sluice_recipient``."""

import sys

from sluice_recipient.cli import main

if __name__ == "__main__":
    sys.exit(main())
