"""python3 -m strixd.cli"""

import sys

from strixd.cli import main

sys.exit(main())
