"""Errors that users can fix: one sentence that says what is wrong, where, and what to do."""

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
