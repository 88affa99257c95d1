"""python3 -m strixd.media"""

import sys

from strixd.media import main

sys.exit(main())
