"""`python3 -m strixd`: the daemon."""

import sys

from strixd.daemon import main

sys.exit(main())
