"""Static site: Markdown rendered as HTML, links between pages and to copied files."""

import re

from rarepapers.__main__ import main
from rarepapers.reporting.site import rendered


def test_every_link_leads_to_a_file(tmp_path):
    root, output = tmp_path / "project", tmp_path / "site"
    texts = {
        "README.md": "[how](docs/a.md) [part](docs/a.md#two-words) [page](results/recorded/small/report/index.html)\n",
        "docs/a.md": "## Two words\n\n| a | b |\n|---|---|\n| 1 | <b> |\n\n[home](../README.md) [web](https://example.org/x.md)\n",
        "results/recorded/small/README.md": "made by\n",
        "results/recorded/small/report/index.html": '<a href="../../../../docs/a.md">a</a>',
        "results/recorded/small/metrics.csv": "a\n",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert main(["site", f"--root={root}", f"--output={output}"]) == 0
    assert (output / ".nojekyll").exists()
    assert (output / "results/recorded/small/metrics.csv").exists()
    for path in output.rglob("*.html"):
        for link in re.findall(r'href="([^"#]+)', path.read_text()):
            assert "://" in link or (path.parent / link).exists(), (path, link)
    page = (output / "docs/a.html").read_text()
    assert '<h2 id="two-words">' in page
    assert "<table>" in page
    assert "&lt;b&gt;" in page
    assert 'href="https://example.org/x.md"' in page


def test_marks_of_the_recorded_part_are_not_shown():
    assert "recorded" not in rendered("<!-- recorded small: begin -->\nshown\n")
