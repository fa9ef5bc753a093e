"""Smaller svg files draw the same lines, curves, texts and scales."""

from rarepapers.reporting.figures.smaller_svg import smaller_svg


def test_lines_need_no_letter_after_the_first_point():
    text = '<path d="M 1.23 -4.56 \nL 7.89 0.12 \nL 3 4 \nz\nM 1 2 \nL 3 4 \nC 5 6 7 8 9 10 \nL 11 12 \n"/>'
    # A point after a curve would go on with the curve, so that line keeps its letter.
    expected = '<path d="M 1.2 -4.5 7.8 0.1 3 4\nz\nM 1 2 3 4\nC 5 6 7 8 9 10\nL 11 12\n"/>'
    assert smaller_svg(text) == expected


def test_long_lines_lose_points_on_them_and_keep_corners():
    there = "".join(f" \nL {x} 0" for x in range(1, 20))
    back = "".join(f" \nL {x} 5" for x in range(19, 0, -1))
    assert smaller_svg(f'<path d="M 0 0{there}{back} \nz\n"/>') == '<path d="M 0 0 19 0 19 5 1 5 1 5\nz\n"/>'


def test_rotations_by_nothing_go_and_others_stay():
    text = '<text x="1.23" transform="rotate(-0 1.23 4.56)"/><text transform="rotate(-90 1.23 4.56)"/>'
    assert smaller_svg(text) == '<text x="1.2"/><text transform="rotate(-90 1.2 4.5)"/>'


def test_scales_keep_their_digits():
    scaled = '<g transform="translate(1.23 4.56) scale(0.125 -0.125)"/>'
    assert (
        smaller_svg(scaled + '<g transform="translate(1.23 4.56)"/>') == scaled + '<g transform="translate(1.2 4.5)"/>'
    )


def test_styles_that_occur_twice_become_classes():
    text = '<style></style><g style="a: b"/><g style="a: b"/><g style="c: d"/>'
    assert smaller_svg(text) == '<style>\n.c0{a: b}</style><g class="c0"/><g class="c0"/><g style="c: d"/>'


def test_groups_without_attributes_go_and_what_they_hold_stays():
    text = '<g id="a">\n<g>\n<g clip-path="b">\n<g fill="d"/>\n<g>\n<use/>\n</g>\n</g>\n</g>\n<text>c</text>\n</g>'
    assert smaller_svg(text) == '\n<g clip-path="b">\n<g fill="d"/>\n<use/>\n</g>\n<text>c</text>'


def test_markers_and_clip_paths_get_short_names_and_stay_linked():
    marker, clip = "m0123456789", "pabcdef0123"
    text = f'<path id="{marker}"/><use xlink:href="#{marker}"/><clipPath id="{clip}"/><g clip-path="url(#{clip})"/>'
    short = '<path id="n0"/><use xlink:href="#n0"/><clipPath id="n1"/><g clip-path="url(#n1)"/>'
    assert smaller_svg(f"{text}<text>{marker}</text>") == f"{short}<text>{marker}</text>"


def test_the_usual_font_is_set_once():
    usual = "font-family: 'DejaVu Sans', 'Verdana', sans-serif"
    text = f'<style>*{{a: b}}</style><text style="font-size: 9px; {usual}"/><text style="font-family: other"/>'
    shown = f'<style>*{{{usual}; a: b}}\n</style><text style="font-size: 9px"/><text style="font-family: other"/>'
    assert smaller_svg(text) == shown
