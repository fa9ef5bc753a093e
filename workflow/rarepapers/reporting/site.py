"""The command `site`: the recorded report and the documentation as a folder for any static host.

Markdown is rendered to HTML at the same path, and links to it are adapted. Other linked files are copied.
"""

import argparse
import re
import shutil
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from rarepapers.core.files import write_text
from rarepapers.reporting.deviations import slug
from rarepapers.reporting.page.page_command import templates

PAGES = ("README.md", "CHANGELOG.md", "docs/*.md", "config/README.md", "results/recorded/*/README.md")
PAGES += ("results/recorded/*/tables/*/*.md",)
FILES = (
    "LICENSE",
    "CITATION.cff",
    "config/config.yaml",
    "docs/*.svg",
    "results/recorded/*/*.csv",
    "results/recorded/*/report/*",
)
FILES += (
    "results/recorded/*/tables/*/*",
    "results/recorded/*/figures/*/*",
    "results/recorded/*/runs/*/*/*/metrics.json",
)
# A link to a Markdown page, in rendered Markdown and in the report.
LINK = re.compile(r'(href="(?![a-z]+:)[^"#]*?)\.md(["#])')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--root", type=Path, default=Path("."), help="the project")
    parser.add_argument("--output", type=Path, required=True, help="folder to build; its contents are removed")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `site`."""
    shutil.rmtree(arguments.output, ignore_errors=True)
    for path in _found(arguments.root, FILES):
        target = arguments.output / path.relative_to(arguments.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".html":
            write_text(target, LINK.sub(r"\1.html\2", path.read_text(encoding="utf-8")))
        else:
            shutil.copy(path, target)
    template = templates().get_template("plain.html.j2")
    for path in _found(arguments.root, PAGES):
        target = arguments.output / path.relative_to(arguments.root).with_suffix(".html")
        body = rendered(path.read_text(encoding="utf-8"))
        write_text(target, template.render(body=body, title=path.stem))
        for link in re.findall(r'href="(?![a-z]+:)([^"#]+)', body):
            _copy_linked(arguments.root, arguments.output, path.parent / link)
    shutil.copy(arguments.output / "README.html", arguments.output / "index.html")
    (arguments.output / ".nojekyll").touch()
    print(arguments.output / "index.html")


def _copy_linked(root: Path, output: Path, linked: Path) -> None:
    """Copy a project file that a page links to, such as a module."""
    source = linked.resolve()
    if source.is_file() and source.is_relative_to(root.resolve()):
        target = output / source.relative_to(root.resolve())
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(source, target)


def rendered(markdown: str) -> str:
    """A Markdown page as HTML, with GitHub's heading ids and links that lead to HTML."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("heading_open", _heading)
    return LINK.sub(r"\1.html\2", parser.render(re.sub(r"<!--.*?-->\n", "", markdown)))


def _heading(renderer: RendererHTML, tokens: list, at: int, options, environment) -> str:
    tokens[at].attrSet("id", slug(re.sub(r"[^\w\s-]", "", tokens[at + 1].content)))
    return renderer.renderToken(tokens, at, options, environment)


def _found(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.is_file()]
