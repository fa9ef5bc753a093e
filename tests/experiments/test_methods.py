"""Methods as a config names them: a mistake is one sentence with the key."""

import pytest

from rarepapers.core.errors import UserError
from rarepapers.experiments.methods import build_method
from raretok.methods.agg import AGG


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"gate": {"name": "agg", "alpha": 0.0}}, r"^m\.gate \(agg\): alpha must be above 0"),
        (
            {"gate": {"name": "agg", "alpha": 0.02, "memory": 1.5}},
            r"^m\.gate\.memory is 1\.5; it must be a whole number",
        ),
        ({"gate": {"name": "agg", "beta": 1}}, r"^m\.gate\.beta is not a parameter of agg; known: alpha, memory"),
        ({"gate": {"name": "agg"}}, r"^m\.gate \(agg\): .* missing 1 required .* 'alpha'"),
        ({"penalty": {"name": "unigram", "strength": "much"}}, r"^m\.penalty\.strength is 'much'; it must be a number"),
        ({"gate": {"name": "none"}}, r"^m\.gate\.name is 'none', but there is no library/raretok/methods/none\.py"),
        ({"gate": {"name": "threshold"}}, r"^m\.gate\.name is 'threshold', which is no gate"),
        ({"loss": {"name": "parts"}}, r"^m\.loss\.name is 'parts', which is no loss"),
        ({"penalty": {"name": "counting"}}, r"^m\.penalty\.name is 'counting', which is no penalty"),
    ],
)
def test_a_wrong_part_is_one_sentence_with_its_key(parts, sentence):
    with pytest.raises(UserError, match=sentence):
        build_method(parts, "m")


def test_a_part_is_the_dataclass_of_its_file():
    assert build_method({"gate": {"name": "agg", "alpha": 1}}).gate == AGG(alpha=1.0)
