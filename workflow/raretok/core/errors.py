"""Errors a user can mend: one sentence that says what is wrong, where, and what to do."""

EXIT_USER_ERROR = 2
# EX_TEMPFAIL of sysexits.h: nothing is wrong, try again. Stopped by a signal with the state saved.
EXIT_INTERRUPTED = 75


class UserError(Exception):
    """A mistake in the user's config, files or machine; printed as one sentence, without a stack trace."""

    exit_status = EXIT_USER_ERROR


class Interrupted(Exception):
    """A signal asked the job to stop, and its state is saved: starting the job again continues it."""

    exit_status = EXIT_INTERRUPTED
