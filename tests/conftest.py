"""Tiny real models, saved locally: random weights, tokenizers trained on a few sentences here."""

from __future__ import annotations

import gc
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import hypothesis
import pytest

from tests.killing import fork_kernels, share_server

SENTENCES = [
    "Over the last two weeks, at work and at home, I feel nervous and anxious.",
    "It very rarely happens to me, but sometimes, frequently or always it does.",
    "I never feel calm, relaxed or at ease when other people talk about my life.",
    "My daily life is full of meaning, and I often enjoy what I do.",
    "Seldom do I have so little interest that the days seem long and empty.",
]
ARCHITECTURES = [
    "bert", "roberta", "distilbert", "albert", "electra", "deberta-v2", "xlnet", "bart",
]  # fmt: skip
_WORDPIECE = {"bert": "Bert", "convbert": "ConvBert", "distilbert": "DistilBert",
              "electra": "Electra", "funnel": "Funnel", "mpnet": "MPNet"}  # fmt: skip
_BYTES = {"bart": "Bart", "gpt2": "GPT2", "llama": "GPT2", "longformer": "Longformer",
          "modernbert": "Roberta", "qwen2": "Qwen2", "roberta": "Roberta"}  # fmt: skip
_UNIGRAM = {"albert": "Albert", "deberta-v2": "DebertaV2", "t5": "T5", "xlnet": "XLNet"}
_TOKENIZERS = _WORDPIECE | _BYTES | _UNIGRAM
_SPECIAL = {
    "gpt2": ["<|endoftext|>"], "llama": ["<|endoftext|>"], "qwen2": ["<|endoftext|>"],
    "mpnet": ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"],
}  # fmt: skip
_HALVES = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
_SIZES = {
    "bart": {f"{half}_{k}": v for half in ("encoder", "decoder") for k, v in _HALVES.items()}
    | {"d_model": 32, "max_position_embeddings": 130},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    | {"max_position_embeddings": 130},
    "funnel": {"d_model": 32, "d_head": 8, "n_head": 4, "d_inner": 64, "block_sizes": [1, 1, 1]}
    | {"num_decoder_layers": 1},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 130},
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    | {"decoder_start_token_id": 0},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
}
"""Sizes of the architectures that have names of their own for them."""
_MORE = {
    "albert": {"embedding_size": 16},
    "convbert": {"embedding_size": 32},
    "deberta-v2": {  # as in the checkpoints in use
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "position_buckets": 16,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
    },
    "llama": {"num_key_value_heads": 2},
    "longformer": {"attention_window": 16},
    "qwen2": {"num_key_value_heads": 2},
}
IN_CI = os.environ.get("CI") == "true"
"""In CI everything is at hand, so that nothing may be skipped for want of it."""
NOT_DOWNLOADED = re.compile(
    r"There is no smollm2 yet: [^\n]*|'\w+' could not be downloaded from [^\n]*"
)
"""The package's own errors where a file that the project does not ship was never downloaded."""
# The first would make this process a poor one; the second are run by other environments.
collect_ignore = ["poverty/everywhere", "clients"]
IN_ALL = {
    "notebooks, chapters and pages": (
        "browser_reader book chapter_answers elsewhere explorers improving killed_builds "
        "other_runs page poverty runs snippets study tables told_at_once web"
    ),
    "models in training": (
        "bases frozen_heads heads interventions talking training twins twins_analysis"
    ),
    "many models, R, a cluster, the hub": (
        "diagnostic families fetching odd_models population_files profile r ray"
    ),
    "faults and speed": "benchmarks chat_at_scale faults",
    "single tests that build a book or execute a chapter": (
        "test_a_published_page_leads_to_itself_in_the_other_version_and_to_the_printed_book "
        "test_the_device_of_a_run_reaches_its_kernel_and_is_refused_before_it "
        "test_a_run_whose_copy_was_deleted_is_made_again_in_its_folder"
    ),
}
"""Test files, and tests, that run with `make test-all` alone, as all that open a browser do.

They execute notebooks or build pages, start other programs, or train. Tests of methods, readers,
the store and the modes are never among them: these are the tests by which mutants are killed.
"""
SMOKE = {
    "test_the_first_chapter_runs_on_a_questionnaire_and_model_of_ones_own",
    "test_every_parameter_of_a_notebook_is_checked_and_its_own_values_pass",
    "test_only_chapters_that_changed_or_read_one_that_did_are_executed_again",
    "test_the_prose_has_the_numbers_of_its_own_run",
    "test_a_page_needs_no_network_and_folds_what_only_sets_up",
    "test_slides_have_sections_tables_and_figures_and_no_code",
    "test_nothing_of_anothers_html_runs_or_loads",
    "test_every_checked_exercise_of_a_chapter_has_its_answer_in_the_file",
    "test_the_pages_have_snippets_and_every_reason_is_needed",
}
"""Tests of these files that `make test` runs, too, with the first short snippet of each page.

Its commands need no file of an earlier snippet, no cluster and no bucket.
"""
SHORT = re.compile(r"psychometrics (ask|(study )?check|scores)\b(?!.*(ray|s3:|runs/))")
hypothesis.settings.register_profile("busy", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("busy")
gc.disable()  # until all is imported: millions of objects, none of which is garbage


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests a home of their own where the user's cannot be written.

    IPython, Matplotlib and the caches of models write there; they warn or fail where they cannot.
    """
    config.pluginmanager.register(_Downloads())  # of the examples in docstrings, too
    config.addinivalue_line("markers", "browser: shows pages; runs where Chromium or Chrome is")
    if os.access(Path.home(), os.W_OK | os.X_OK):
        return
    home = tempfile.mkdtemp(prefix="home-")
    os.environ["HOME"] = home
    config.add_cleanup(partial(shutil.rmtree, home, ignore_errors=True))


def pytest_collection_finish() -> None:
    """Leave what is imported out of every search for garbage, which would look at all of it."""
    gc.freeze()
    gc.enable()


def needs(*keys: str) -> pytest.MarkDecorator:
    """Skip a test where files that others own are not at hand; they always are in CI."""
    from psychometrics.data import available

    there = IN_CI or available(*keys)
    reason = f"{keys[0]} and the like are neither in PSYCHOMETRICS_DATA_MIRROR nor in the cache"
    return pytest.mark.skipif(not there, reason=reason)


def browser_path() -> str | None:
    """Return the path of Chromium or Chrome, None where neither is installed."""
    from psychometrics.reports.printing import find_browser

    return find_browser()


def needs_browser(test: Callable) -> Callable:
    """Skip a test where neither Chromium nor Chrome is installed; one of them always is in CI."""
    there = IN_CI or browser_path() is not None
    return pytest.mark.skipif(not there, reason="neither Chromium nor Chrome is on the PATH")(test)


class _Downloads:
    """Skip a test that ends in an error about a file that was never downloaded; not in CI."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        return (yield from self._skipping())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        return (yield from self._skipping())

    def _skipping(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except (Exception, pytest.fail.Exception) as error:
            missing = NOT_DOWNLOADED.search(_message(error))
            if missing is None or IN_CI:
                raise
            reason = missing[0]
        pytest.skip(reason)


def _message(error: BaseException) -> str:
    """Return what an error says, or what the errors in a docstring's examples say."""
    failures = getattr(error, "failures", [error])
    causes = [getattr(failure, "exc_info", (None, failure))[1] for failure in failures]
    return "\n".join(map(str, causes))


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of `make test-all` and of a browser; group all for several processes.

    On several processes a file's tests stay together, but for pages of the book.

    The plugin begins with the groups of most tests and ends with the pages, one to a group and
    seconds each, so that no process is left alone with much at the end.
    """
    slow = {name for names in IN_ALL.values() for name in names.split()}
    pages_seen = set()
    for item in items:
        shows_pages = "browser" in getattr(item, "fixturenames", ())
        if shows_pages:
            item.add_marker("browser")

        test = getattr(item, "originalname", "")
        is_slow = shows_pages or test in slow or item.path.stem.removeprefix("test_") in slow
        is_smoke = test in SMOKE
        if item.path.stem == "test_snippets" and hasattr(item, "callspec"):
            page = item.callspec.params["page"]
            is_smoke = page not in pages_seen and SHORT.match(item.callspec.params["text"])
            if is_smoke:
                pages_seen.add(page)

        if is_slow and not is_smoke:
            item.add_marker("all")

    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        given = item.callspec.params if hasattr(item, "callspec") else {}
        own = {"test_snippets": "page", "test_web": "page"}
        group = f"{item.path.stem} {given.get(own.get(item.path.stem), '')}"
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: tests also wait, for servers, a browser, a cluster."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """All workers of the whole suite fork from one process, which imports the libraries once."""
    if not node.config.option.file_or_dir:
        node.workerinput["server"] = share_server()


@pytest.fixture(scope="session", autouse=True)
def _forked_kernels(request):
    """Kernels of notebooks start in no time: a fresh one imports for seconds."""
    if address := getattr(request.config, "workerinput", {}).get("server"):
        share_server(address)
    with pytest.MonkeyPatch.context() as patch:
        fork_kernels(patch)
        yield


@pytest.fixture(scope="session")
def save_tiny_model() -> Callable[..., Path]:
    """Function that saves a random model of an architecture, and its tokenizer, to a folder."""
    return _save_tiny_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny BERT with random weights, a tokenizer and NLI label names."""
    return _save_tiny_model(tmp_path_factory.mktemp("models") / "tiny-bert", "bert")


@pytest.fixture(scope="session")
def tiny_talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny causal model that converses."""
    from tests.tiny import save_tiny_decoder

    return save_tiny_decoder(tmp_path_factory.mktemp("models") / "talker")


def _save_tiny_model(
    folder: Path,
    architecture: str = "bert",
    labels: tuple[str, ...] = ("entailment", "neutral", "contradiction"),
    sentences: list[str] = SENTENCES,
    seed: int = 0,
    spread: float = 10.0,
    **settings,
) -> Path:
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.set_num_threads(1)
    tokenizer = _tokenizer(architecture, sentences)
    sizes = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 130,
    }  # fmt: skip
    sizes = _SIZES.get(architecture, sizes | _MORE.get(architecture, {}))
    tokens = ("pad", "bos", "eos", "cls", "sep")
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in tokens}
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
        **{name: value for name, value in ids.items() if value is not None},
        **(sizes | settings),
    )
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():  # fresh weights are so small that all answers would be about 1/3
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(spread)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(architecture: str, sentences: list[str]):
    """A tokenizer of the architecture's own class, over the sentences' words and letters."""
    import tokenizers
    import transformers

    kind = getattr(transformers, _TOKENIZERS[architecture] + "Tokenizer")
    words = sorted(set(re.findall(r"\w+|[^\w\s]", " ".join(sentences).lower())))
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,'".join(words)))
    if architecture in _WORDPIECE:
        special = _SPECIAL.get(architecture, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        vocab = [*special, *words, *letters, *(f"##{letter}" for letter in letters)]
        vocab = {token: i for i, token in enumerate(dict.fromkeys(vocab))}
        return kind(vocab=vocab, model_max_length=128)
    if architecture in _BYTES:
        special = _SPECIAL.get(architecture, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"), ("e", "r")]
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        vocab = [*special, *alphabet, *map("".join, merges)]
        vocab = {token: i for i, token in enumerate(vocab)}
        tokenizer = kind(vocab=vocab, merges=merges, model_max_length=128)
        if architecture in _SPECIAL:  # decoders' classifiers are saved with one
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer
    # Unigram, in which a word is marked by the sign before it
    empty = kind()
    names = ("unk", "pad", "bos", "eos", "cls", "sep", "mask")
    if architecture == "t5":  # whose class takes the third for unknown text
        names = ("pad", "eos", "unk")
    special = (getattr(empty, f"{name}_token") for name in names)
    scores = {token: 0.0 for token in special if token}
    scores |= {letter: -9.0 for letter in ["▁", *letters]} | {f"▁{word}": -5.0 for word in words}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return kind(
        vocab=list(scores.items()),
        do_lower_case=True,
        model_max_length=128,
        model_input_names=inputs,
    )


@pytest.fixture
def ended(monkeypatch, tmp_path, capsys):
    """Function that runs the command as a shell does: exit status, what was printed, errors."""
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        from psychometrics.cli import main

        monkeypatch.setattr("sys.argv", ["psychometrics", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


_LOADS = re.compile(
    r"url\(\s*['\"]?(https?:)?//|@import\s*['\"]?(https?:)?//|\bimport\b.*https?://"
)


def loads_from_elsewhere(page) -> list[str]:
    """Return what a parsed page, or the text of a style sheet, loads from another host."""
    if isinstance(page, str):
        return [found[0] for found in _LOADS.finditer(page)]

    texts = []
    for element in page.find_all(True):
        names = ["src", "srcset", "data", "poster", "action", "formaction", "background"]
        if element.name != "a":
            names.append("href")
        texts += [
            text for name in names if re.match(r"\s*(https?:)?//", text := element.get(name, ""))
        ]
        texts += loads_from_elsewhere(element.get("style", ""))
        if element.name in ("script", "style"):
            texts += loads_from_elsewhere(element.string or "")
    return [text[:99] for text in texts]


def policy_of(page) -> dict[str, list[str]]:
    """Return the Content-Security-Policy of a parsed page, by directive; empty if it has none."""
    element = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    rules = element["content"].split(";") if element else []
    return {name: sources for name, *sources in map(str.split, rules)}


def foreign_sources(policy: dict[str, list[str]]) -> set[str]:
    """Return the sources of a policy that are neither its own place nor made by its scripts."""
    return {
        source
        for sources in policy.values()
        for source in sources
        if not (source.startswith("'") or source in ("file:", "data:", "blob:"))
    }


def wait_until(page, condition: str, seconds: float = 60.0) -> None:
    """Wait until a condition holds in a page; Playwright's own way needs a page that may eval."""
    for _ in range(int(seconds / 0.05)):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(condition)


@contextmanager
def asked_paths() -> Generator[tuple[str, list[str]]]:
    """A host on this machine, and the paths that it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def browser():
    """Chromium or Chrome without a window, one for all pages of a module."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = browser_path()
    if path is None:
        if IN_CI:
            pytest.fail("CI=true needs Chromium: apt-get install chromium")
        pytest.skip("neither Chromium nor Chrome is installed")
    options = ["--no-sandbox", "--disable-quic", "--disable-gpu"]
    with sync.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()
