"""Files, archives and catalogue entries for tests of data preparation."""

import hashlib
import io
import tarfile
import zipfile

from rarepapers.data.catalogue import Member, Published, Wanted

TEXT = b"Words, words, words.\n" * 100
OTHER = b"The rest is silence.\n" * 100


def published(body: bytes, *urls: str, path: str = "text.txt", archive: str | None = None, **changes) -> Published:
    """A file of the catalogue with the size and checksum of `body`."""
    facts = {"size": len(body), "checksum": f"sha256:{hashlib.sha256(body).hexdigest()}", "manual": None}
    return Published(path=path, urls=urls, archive=archive, **(facts | changes))


def wanted(file: Published, member: Member | None = None, mirror: str = "plays") -> Wanted:
    return Wanted(dataset="plays", mirror=mirror, file=file, member=member)


def member(path: str, body: bytes) -> Member:
    return Member(path, len(body), f"sha256:{hashlib.sha256(body).hexdigest()}")


def make_tar(path, members, mode="w:gz"):
    """members: (name, bytes or the target of a symbolic link)."""
    with tarfile.open(path, mode) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if isinstance(content, str):
                info.external_attr = 0o120777 << 16
            zipped.writestr(info, content)
    return path
