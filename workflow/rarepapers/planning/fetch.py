"""The command `fetch`: fills a data mirror with the files that the runs of a config need.

Compute nodes of a cluster may have no network: run this on a login node, then give the folder as `data_mirror`.
"""

import argparse
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rarepapers.core.errors import Interrupted, UserError
from rarepapers.data.catalogue import Wanted
from rarepapers.data.download.download_command import in_mirror, keep, published_path
from rarepapers.data.download.http_transfer import difference
from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import load_to_train
from rarepapers.rule_inputs.required_files import needed_files

DONE, MISSING, BY_HAND = "done", "missing", "by hand"


@dataclass
class Row:
    """One published file, and the members of it that runs need.

    `size` in bytes: of the existing file, else as published, else None. `remedy`: what the user must do.
    """

    wanted: list[Wanted]
    state: str
    size: int | None
    remedy: str | None = None

    @property
    def dataset(self) -> str:
        return self.wanted[0].dataset

    @property
    def name(self) -> str:
        return self.wanted[0].file.path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    config_options.add_arguments(parser)
    parser.add_argument("--mirror", type=Path, default=Path("mirror"), help="folder to fill (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="list existing and missing files without fetching")


def main(arguments: argparse.Namespace) -> None:
    """Fill the mirror and print its contents; raises UserError (exit status 2) if something is still missing."""
    table = load_to_train(arguments, data_mirror=None)
    rows = survey(needed_files(table), arguments.mirror)
    if not rows:
        print(f"Scale {table.scale} needs no file from outside for {', '.join(table.papers)}.")
        return
    if not arguments.dry_run:
        try:
            fill(rows, arguments.mirror)
        except KeyboardInterrupt:
            raise Interrupted("stopped; the same command continues with what has arrived") from None
    print("\n".join(survey_text(rows, table.datasets)))
    missing = [row for row in rows if row.state != DONE]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(rows)} files are not in {arguments.mirror}; the table above says which"
        )
    print(f"Everything is there. On nodes without network: --config scale={table.scale} data_mirror={arguments.mirror}")


def survey(files: list[Wanted], mirror: Path) -> list[Row]:
    """The contents of `mirror` compared with `files` by size and checksum, one row per published file."""
    datasets: dict[str, dict[str, list[Wanted]]] = {}
    for wanted in files:
        datasets.setdefault(wanted.dataset, {}).setdefault(wanted.file.path, []).append(wanted)
    return [_look(group, mirror) for groups in datasets.values() for group in groups.values()]


def _look(group: list[Wanted], mirror: Path) -> Row:
    first = group[0]
    own = published_path(first, mirror)
    held = {}
    for wanted in group:
        path, published = in_mirror(wanted, mirror)
        if path is not None and path not in held:
            held[path] = difference(path, published)
        elif path is None:
            held[None] = "lacks it"
    if not any(held.values()):
        return Row(group, DONE, sum(path.stat().st_size for path in held))
    foreign = [path for path, wrong in held.items() if wrong and path not in (None, own)]
    if foreign:
        # A download would be stored elsewhere, but this file would still be found first.
        names = ", ".join(map(str, foreign))
        return Row(group, BY_HAND, first.file.size, f"{names}: not the published file ({held[foreign[0]]}); delete it")
    if not first.file.urls:
        return Row(group, BY_HAND, first.file.size, f"{first.file.manual}; then put the file at {own}")
    return Row(group, MISSING, first.file.size)


def fill(rows: list[Row], mirror: Path) -> None:
    """Download what is missing; the rows record the results. A failure does not stop the other downloads."""
    waiting = [row for row in rows if row.state == MISSING]
    for number, row in enumerate(waiting, 1):
        print(f"[{number}/{len(waiting)}] {row.dataset}/{row.name}", file=sys.stderr)
        try:
            keep(row.wanted, mirror)
        except UserError as error:
            row.remedy = str(error)
        else:
            row.state, row.size = DONE, published_path(row.wanted[0], mirror).stat().st_size


def survey_text(rows: list[Row], datasets: dict) -> list[str]:
    """Lines for the terminal: data sets with their licences, files with size and state, totals, remaining work."""
    width = max(len(row.name) for row in rows) + 2
    lines = []
    for dataset, own in groupby(rows, key=lambda row: row.dataset):
        lines.append(f"{dataset} ({datasets[dataset]['licence']})")
        lines += [f"  {row.name:{width}}{in_words(row.size):>14}  {_state(row)}" for row in own]
    lines.append("")
    for state in (DONE, MISSING, BY_HAND):
        own = [row for row in rows if row.state == state]
        unknown = sum(row.size is None for row in own)
        sizes = [in_words(sum(row.size or 0 for row in own))] if unknown < len(own) else []
        sizes += [f"{unknown} of unpublished size"] if unknown else []
        if own:
            lines.append(f"{state}: {len(own)} of {len(rows)} files, {' and '.join(sizes)}")
    remedies = [f"- {row.dataset}/{row.name}: {row.remedy}" for row in rows if row.remedy]
    return lines + (["", "What is left to do by hand:", *remedies] if remedies else [])


def _state(row: Row) -> str:
    """The state of a row, with a note if it was not verified by a checksum."""
    checked = all((wanted.member or wanted.file).checksum or wanted.file.checksum for wanted in row.wanted)
    return row.state if checked or row.state != DONE else f"{row.state}, unchecked: no checksum is published"


def in_words(size: int | None) -> str:
    """A number of bytes in words."""
    if size is None:
        return "not published"
    for unit, bytes_each in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_each:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size} B"
