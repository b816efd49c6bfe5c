"""Find the cause of a failure on Spark and summarize it in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from placewire.model.errors import Unusable

UNUSABLE_LINE = re.compile(rf"^{re.escape(Unusable.__module__)}\.Unusable: (.+)$", re.MULTILINE)
WORKER_ERROR = "An exception was thrown from the Python worker"
OWN_CLASS = re.compile(r"\Aplacewire\.[\w.]+: ")  # the class before an error message


def summarize_error(error: Exception) -> str:
    """Summarize an error in one line, a Java exception by its root cause."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString()).strip()
    if text.startswith(WORKER_ERROR):  # a traceback, whose last line is the message
        return f"in a task: {OWN_CLASS.sub('', text.splitlines()[-1].strip(), count=1)}"
    return text.splitlines()[0]


def find_unusable(error: Exception) -> Unusable | None:
    """Return the Unusable error of a Spark process, if that caused the failure."""
    found = UNUSABLE_LINE.search(str(error))
    return Unusable(found[1]) if found else None
