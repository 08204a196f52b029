"""The one exception for what a user can mend: bad input, bad settings, a missing file."""

from __future__ import annotations


class InputError(ValueError):
    """A mistake in the input or the settings.

    The message is one line that names the file, line or id and says what to do. The command
    line prints it without a traceback and exits with 2.
    """
