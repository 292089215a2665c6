"""What the library says while it works, for pipelines that ask: Python's logging, under "massart"."""

import logging

log = logging.getLogger("massart")
log.addHandler(logging.NullHandler())
