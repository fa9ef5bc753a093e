"""Errors a user can mend: one sentence that says what is wrong, where, and what to do."""


class UserError(Exception):
    """A mistake in the user's config, files or machine; printed as one sentence, without a stack trace."""


class Interrupted(Exception):
    """A signal asked the job to stop, and its state is saved: starting the job again continues it."""
