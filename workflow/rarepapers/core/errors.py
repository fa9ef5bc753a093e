"""Errors that users can fix: one sentence that says what is wrong, where, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

EXIT_USER_ERROR = 2
# EX_TEMPFAIL of sysexits.h: try again. The job was stopped by a signal after saving its state.
EXIT_INTERRUPTED = 75


class UserError(Exception):
    """A mistake in the user's config, files or machine; printed as one sentence without a stack trace."""

    exit_status = EXIT_USER_ERROR


class NotFinite(UserError):
    """A non-finite training loss; another attempt with the same settings would fail the same way."""


class Interrupted(Exception):
    """A signal stopped the job after its state was saved; starting the job again continues it."""

    exit_status = EXIT_INTERRUPTED


def meant(name: str, known: Iterable[str]) -> str:
    """What was probably meant by an unknown name, or all that is known, as the end of a sentence."""
    known = list(known)
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"it can be {', '.join(one or 'empty' for one in known)}" if known else "there is none"
