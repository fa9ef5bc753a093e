"""Order of the tests."""

from pathlib import Path

# Files that take up to a minute each, because they kill and continue trainings.
LONG = Path(__file__).parent / "training"


def pytest_collection_modifyitems(items):
    """Long files first, so that no worker starts one when the other is idle."""
    items.sort(key=lambda item: not item.path.is_relative_to(LONG))
