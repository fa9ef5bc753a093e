"""The order of all tests."""

from pathlib import Path

# Trainings that are killed and continued: files that take up to a minute each.
LONG = Path(__file__).parent / "training"


def pytest_collection_modifyitems(items):
    """Long files first, so that no worker begins one when the other has nothing left to do."""
    items.sort(key=lambda item: not item.path.is_relative_to(LONG))
