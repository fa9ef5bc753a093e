"""Archives: the requested member only, and refusal of hostile or broken archives."""

import gzip

import pytest
from made_files import make_tar, make_zip

from rarepapers.core.errors import UserError
from rarepapers.data.download.unpack import unpack

TEXT = b"To be, or not to be\n" * 5000


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_tar_member(tmp_path, mode):
    archive = make_tar(tmp_path / "a.tar", [("plays/readme", b"read me"), ("./plays/hamlet.txt", TEXT)], mode)
    unpack(archive, "tar", "plays/hamlet.txt", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == TEXT


def test_zip_member_and_gz(tmp_path):
    make_zip(tmp_path / "a.zip", [("plays/readme", b"read me"), ("plays/hamlet.txt", TEXT)])
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT))
    for kind in ("zip", "gz"):
        unpack(tmp_path / f"a.{kind}", kind, "plays/hamlet.txt", tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == TEXT


@pytest.mark.parametrize("evil", ["../evil", "/etc/evil", "plays/../../evil", "..\\evil"])
@pytest.mark.parametrize(("kind", "make"), [("tar", make_tar), ("zip", make_zip)])
def test_an_archive_with_a_member_outside_its_folder_is_refused(tmp_path, kind, make, evil):
    folder = tmp_path / "inner" / "folder"
    folder.mkdir(parents=True)
    archive = make(folder / "a", [("plays/hamlet.txt", TEXT), (evil, b"evil")])
    with pytest.raises(UserError, match=r"unsafe .*evil"):
        unpack(archive, kind, "plays/hamlet.txt", folder / "out")
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(("kind", "make"), [("tar", make_tar), ("zip", make_zip)])
def test_a_link_instead_of_the_member_is_refused(tmp_path, kind, make):
    archive = make(tmp_path / "a", [("plays/readme", b"read me"), ("plays/hamlet.txt", "readme")])
    with pytest.raises(UserError, match=r"unsafe .*hamlet"):
        unpack(archive, kind, "plays/hamlet.txt", tmp_path / "out")


@pytest.mark.parametrize("target", ["../../../etc/passwd", "/etc/passwd", "../.."])
def test_an_archive_with_a_link_out_of_its_folder_is_refused(tmp_path, target):
    archive = make_tar(tmp_path / "a", [("plays/hamlet.txt", TEXT), ("plays/evil", target)])
    with pytest.raises(UserError, match=r"unsafe"):
        unpack(archive, "tar", "plays/hamlet.txt", tmp_path / "out")


def test_a_link_inside_the_folder_is_allowed(tmp_path):
    archive = make_tar(tmp_path / "a", [("plays/hamlet.txt", TEXT), ("plays/best", "../plays/hamlet.txt")])
    unpack(archive, "tar", "plays/hamlet.txt", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == TEXT


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip", "gz"])
def test_a_truncated_archive_is_refused(tmp_path, kind, share):
    archive = tmp_path / "a"
    if kind == "gz":
        archive.write_bytes(gzip.compress(TEXT))
    elif kind == "zip":
        make_zip(archive, [("hamlet.txt", TEXT)])
    else:
        make_tar(archive, [("hamlet.txt", TEXT)], "w:gz" if kind == "tar.gz" else "w")
    whole = archive.read_bytes()
    # A plain tar ends in padding, so the cut must reach into the member.
    archive.write_bytes(whole[: int(min(len(whole), len(TEXT)) * share)])
    with pytest.raises(UserError, match=r"damaged or cut short") as raised:
        unpack(archive, kind.removesuffix(".gz") if kind != "gz" else "gz", "hamlet.txt", tmp_path / "out")
    assert str(archive) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("kind", "make"), [("tar", make_tar), ("zip", make_zip)])
def test_missing_member_names_archive_and_key(tmp_path, kind, make):
    archive = make(tmp_path / "a", [("plays/readme", b"read me")])
    with pytest.raises(UserError, match=r"no member plays/hamlet.txt; correct `members` in config/datasets.yaml"):
        unpack(archive, kind, "plays/hamlet.txt", tmp_path / "out")
