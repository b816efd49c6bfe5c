"""What failed on Spark, in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from placewire.model.errors import Unusable

MISTAKE = re.compile(rf"^{re.escape(Unusable.__module__)}\.Unusable: (.+)$", re.MULTILINE)
WORKER = "An exception was thrown from the Python worker"
OURS = re.compile(r"\Aplacewire\.[\w.]+: ")  # an error's class, before what it says


def first_line(error: Exception) -> str:
    """An error in one line; one of Spark's by what caused it."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString()).strip()
    if text.startswith(WORKER):  # a traceback: what it says stands at its end
        return f"in a task: {OURS.sub('', text.splitlines()[-1].strip(), count=1)}"
    return text.splitlines()[0]


def find_unusable(error: Exception) -> Unusable | None:
    """What a process of Spark's found unusable, if that is why it failed."""
    found = MISTAKE.search(str(error))
    return Unusable(found[1]) if found else None
