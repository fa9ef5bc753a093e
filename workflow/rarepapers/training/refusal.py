"""Refusal of a second attempt at a training whose loss was not finite, since it would fail again.

Snakemake retries every failed training (`retries`), whatever its exit status. A training whose loss is not finite
leaves a note beside its state; within the same workflow, further attempts fail at once with the same message. When the
workflow is started again, such a run is trained again.
"""

import os
from pathlib import Path

from rarepapers.core.errors import NotFinite
from rarepapers.core.files import read_json, write_json

# Environment variable that identifies the workflow in all its jobs, on any machine.
WORKFLOW = "RARETOK_WORKFLOW"
_NOTE = "not_finite.json"


def refuse_again(state: Path) -> None:
    """Raise the error of an earlier attempt in this workflow, if its loss was not finite."""
    note = state / _NOTE
    if not note.exists():
        return
    found = read_json(note)
    if found["workflow"] == os.environ.get(WORKFLOW):
        raise NotFinite(found["error"])
    note.unlink(missing_ok=True)


def note_error(state: Path, error: NotFinite) -> None:
    """Note `error` in the state folder for further attempts in this workflow, if a workflow started this process."""
    if WORKFLOW in os.environ:
        write_json(state / _NOTE, {"workflow": os.environ[WORKFLOW], "error": str(error)})
