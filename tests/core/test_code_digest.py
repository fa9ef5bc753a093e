"""The code digest: all modules that Python loads for a job, and those that functions import, without comments."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.core import code_digest
from rarepapers.core.code_digest import PACKAGES, file_of, holds_code, model_module, sources_of
from rarepapers.core.errors import UserError
from rarepapers.experiments import run_code
from rarepapers.experiments.run_table import load
from rarepapers.experiments.trained_runs import code_that_measures, code_that_trains
from rarepapers.machine.commands import COMMANDS
from rarepapers.rule_inputs import code, evaluate, train

ROOT = Path(__file__).parents[2]
REPORTS = ("collect", "table", "claims", "page", "measure-gpt2")
MODULES = [COMMANDS[command][0] for command in REPORTS]
LISTED = "import sys, {}; print(*(name for name in sys.modules if name.split('.')[0] in ('rarepapers', 'raretok')))"


@cache
def loaded(module):
    """Modules of the package that Python has after importing this."""
    command = [sys.executable, "-c", LISTED.format(module)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def paths(modules):
    names = [name for name in modules if holds_code(name)]
    return {file_of(name).relative_to(PACKAGES[name.split(".")[0]].parent).as_posix() for name in names}


def short(files):
    return {path.removeprefix("rarepapers/").removesuffix(".py") for path in files}


@pytest.fixture(scope="module")
def table():
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    return load(config | {"scale": "paper", "seeds": 1}, ROOT)


@pytest.mark.parametrize(
    "module", ["rarepapers.training.loop", "rarepapers.reporting.figures.figure_command", *MODULES]
)
def test_every_loaded_module_is_listed(module):
    assert paths(loaded(module)) <= set(sources_of(module))


def test_no_name_of_the_library_is_imported_lazily():
    """`from raretok import OutputLoss` would load a module that no import statement names."""
    asked = {name for path in PACKAGES["rarepapers"].rglob("*.py") for name in lazy_names(path)}
    assert asked <= {"__version__"}


def lazy_names(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {one.name for n in nodes if isinstance(n, ast.ImportFrom) and n.module == "raretok" for one in n.names}


def test_imports_inside_functions_and_of_modules_from_packages_count():
    assert "raretok/metrics/sampler_margins" in short(sources_of("rarepapers.papers.stop_jostling.claims"))
    assert "papers/stop_jostling/schematic" in short(sources_of("rarepapers.papers.stop_jostling.figures"))
    assert {"training/loop", "data/text/block_batches"} <= short(sources_of("rarepapers.training.train_command"))


def test_packages_count_if_they_hold_code():
    files = short(sources_of("rarepapers.models.gpt2"))
    assert "models/__init__" in files
    assert "models/decoder" not in files  # loaded by name
    assert "evaluation/__init__" not in short(sources_of("rarepapers.evaluation.gpt2_margins"))


def test_an_unknown_module_is_refused():
    with pytest.raises(UserError, match="papers/agg/unknown"):
        sources_of("rarepapers.papers.agg.unknown")


@pytest.fixture
def counted(monkeypatch):
    """Record the files of every requested digest instead of computing it."""
    monkeypatch.setattr(run_code, "code_of", lambda *modules: short(sources_of(*modules)))
    monkeypatch.setattr("rarepapers.rule_inputs.code.code_of", lambda *modules: short(sources_of(*modules)))


@pytest.mark.parametrize(
    ("command", "own", "others"),
    [
        ("prepare", {"data/characters/prepare"}, {"data/tokenizers/words"}),
        ("encode", {"data/text/encode_text"}, {"data/characters/prepare"}),
        ("encode-pairs", {"data/pairs/encode_pairs"}, {"data/characters/prepare"}),
        ("align", {"data/alignment/align_command"}, {"data/tokenizers/words"}),
    ],
)
def test_data_depend_on_the_code_that_writes_them(counted, command, own, others):
    files = code.command_code(command)
    assert own <= files
    assert not others & files
    assert not any(name.startswith(("training", "models", "reporting")) for name in files)


def test_ids_depend_only_on_the_tokenizer_of_their_corpus(table, counted):
    used = {
        name: {one for one in code.of_encoding(table, command)(SimpleNamespace(corpus=name)) if "tokenizers/" in one}
        for name, command in (
            ("wikitext-2_words16k", "encode"),
            ("synthetic_translation", "encode-pairs"),
            ("iwslt14_en-de", "reverse-pairs"),
        )
    }
    both = "data/tokenizers/__init__"
    assert used["wikitext-2_words16k"] == {both, "data/tokenizers/words"}
    assert used["synthetic_translation"] == {both, "data/tokenizers/sentencepiece"}
    assert used["iwslt14_en-de"] - {both} == {"data/tokenizers/sentencepiece"}


def test_a_figure_depends_on_its_papers_module(table, counted):
    files = code.of_figures(SimpleNamespace(paper="stop_jostling", item="figure1"))
    assert short(paths(loaded("rarepapers.papers.stop_jostling.figures"))) <= files
    assert {"reporting/figures/figure_command", "reporting/collect"} <= files


def test_claims_depend_on_the_modules_of_every_paper(table, counted):
    judged = code.of_claims(table)
    assert {"reporting/claims/claims_command", "papers/agg/claims", "papers/stop_jostling/claims"} <= judged
    assert "raretok/metrics/sampler_margins" in judged


def test_training_depends_on_its_own_parts_and_on_no_report(table, counted):
    def files(method):
        wildcards = SimpleNamespace(experiment="shakespeare", method=method, seed="1")
        assert not any(name.startswith(("reporting", "training")) for name in evaluate.code(table, wildcards))
        return train.code(table, wildcards)

    threshold, softminus = files("threshold_m2"), files("softminus_m2")
    assert {
        "raretok/methods/threshold",
        "raretok/methods/separated",
        "training/optimiser",
        "models/decoder",
    } <= threshold
    assert threshold - softminus == {"raretok/methods/threshold"}
    assert not any(name.startswith(("reporting", "evaluation")) for name in threshold)
    # What a job executes counts, however little it has to do with numbers; what reads the config does not.
    assert {"core/files", "data/prepared_corpus", "machine/device", "training/train_command"} <= threshold
    assert not {"data/catalogue", "experiments/run_table", "experiments/config_types"} & threshold


def test_a_job_depends_on_no_other_kind_of_run(table, counted):
    first = {run.kind: run for run in reversed(table.runs.values())}
    trained = {kind: code_that_trains(run) for kind, run in first.items()}
    search = {"models/beam_search", "models/encoder_decoder", "training/translation_task"}
    assert search <= trained["translation"]
    assert not search & (trained["characters"] | trained["language"])
    measured = {kind: code_that_measures(run) for kind, run in first.items()}
    own = {"characters": "evaluation/characters", "language": "metrics/word_similarity"}
    assert own["characters"] in measured["characters"] - measured["language"] - measured["translation"]
    assert own["language"] in measured["language"] - measured["characters"]
    assert "models/beam_search" in measured["translation"] - measured["language"]


@pytest.mark.parametrize(("kind", "model"), [("characters", "decoder"), ("translation", "encoder_decoder")])
def test_modules_loaded_by_name_are_listed(kind, model):
    """A run's modules, imported like its command does, are those that its digest reads."""
    for modules in (
        ["rarepapers.evaluation.evaluate_command", run_code.MEASURES[kind], model_module(model)],
        ["rarepapers.training.train_command", run_code.TASKS[kind], model_module(model)],
    ):
        read = loaded(", ".join(modules))
        # All tokenizers are imported for the types of their config; only that of a run's corpus is in its digest.
        assert paths(one for one in read if "data.tokenizers" not in one) <= set(sources_of(*modules))


PROGRAM = '"""Doubles."""\n\n\ndef double(x):\n    """Two x."""\n    return 2 * x  # not x**2\n'


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("Doubles.", "Doubles a number.", True),
        ("Two x.", "Twice x.", True),
        ('    """Two x."""\n', "", True),
        ("# not x**2", "# not squared", True),
        ("2 * x ", "(2 * x) ", True),
        ("2 * x ", "2 + x ", False),
        ("x):", "y, x):", False),
        ("return 2", "return '2'", False),
    ],
)
def test_comments_do_not_count_and_operators_do(tmp_path, old, new, is_same):
    assert old in PROGRAM
    files = tmp_path / "one.py", tmp_path / "other.py"
    for file, text in zip(files, (PROGRAM, PROGRAM.replace(old, new)), strict=True):
        file.write_text(text)
    one, other = (code_digest._program(file)[0] for file in files)
    assert (one == other) == is_same


def test_a_cached_program_is_parsed_again_only_if_damaged(tmp_path, monkeypatch):
    def program():
        code_digest._program.cache_clear()
        return code_digest._program(file)

    file, kept = tmp_path / "one.py", tmp_path / "kept"
    file.write_text("import json\n" + PROGRAM)
    monkeypatch.setattr(code_digest, "KEPT", tmp_path / "missing" / "kept")
    first = program()
    assert first == ["import json\n\ndef double(x):\n    return 2 * x", [["json", []]]]
    monkeypatch.setattr(code_digest, "KEPT", kept)
    assert program() == first
    (copy,) = kept.iterdir()
    whole = copy.read_bytes()
    parsed = []
    parse = code_digest._parse
    monkeypatch.setattr(code_digest, "_parse", lambda *arguments: parsed.append(1) or parse(*arguments))
    assert program() == first
    assert not parsed
    for damaged in (b"", whole[:-1], whole.replace(b"2 * x", b"3 * x"), whole.replace(b"2 * x", b"2 \xff x")):
        copy.write_bytes(damaged)
        assert program() == first
        assert copy.read_bytes() == whole
    assert len(parsed) == 4
    copy.unlink()
    copy.mkdir()
    assert program() == first
    file.write_text(PROGRAM.replace("2 * x", "3 * x"))
    assert program()[0].endswith("3 * x")


def test_a_program_is_the_same_in_every_python():
    """Versions after 3.11 write the quotes inside an f-string differently."""
    program = ast.parse("""f"{a['b']} is" + f'{"c"}' + f"{a}" + f"it's {a['b']}" """)
    expected = """f"{a['b']} is" + f"{'c'}" + f'{a}' + f"it's {a['b']}\""""
    assert code_digest._Unparser().visit(program) == expected


def test_python_3_14_has_its_unparser_in_another_module():
    moved = (
        "import ast, sys, types; own = ast._Unparser; del ast._Unparser; "
        "sys.modules['_ast_unparse'] = types.SimpleNamespace(Unparser=own)"
        if hasattr(ast, "_Unparser")
        else "pass"
    )
    command = [sys.executable, "-c", f"{moved}; import rarepapers.core.code_digest"]
    subprocess.run(command, check=True)
