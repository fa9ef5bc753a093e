"""Methods of a new paper can be told apart in its figures."""

import json

from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.figures.style import METHODS, look_of


def test_methods_without_a_look_of_their_own_differ_by_their_place():
    methods = {f"new{n}": {"label": f"New {n}", "experiment": "e", "seeds": [1]} for n in range(9)}
    raw = {"paper": "p", "title": "P", "scale": "s", "scale_title": "S", "comparable": False, "methods": methods}
    looks = [look_of(method) for method in definition_of(raw).methods.values()]
    for parts in (("color",), ("linestyle", "marker")):
        assert len({json.dumps([look[part] for part in parts]) for look in looks}) == len(looks)


def test_a_name_of_the_four_papers_has_its_look_in_every_paper():
    raw = {"paper": "p", "title": "P", "scale": "s", "scale_title": "S", "comparable": False}
    methods = {name: {"label": name, "experiment": "e", "seeds": [1]} for name in ("other", "agg")}
    assert look_of(definition_of(raw | {"methods": methods}).methods["agg"]) == METHODS["agg"]
