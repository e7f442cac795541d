"""Work in processes that are forked from one in which the libraries are loaded already."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

import pytest

# One process imports what is tested and forks for each run: a fresh interpreter takes seconds, and
# the libraries of a command take more than most commands.
_CONTEXT, _SERVER = multiprocessing.get_context("forkserver"), forkserver._forkserver
_CONTEXT.set_forkserver_preload(
    ["psychometrics.store.answers", "psychometrics.cli", "pytest", "papermill", "peft", "pingouin",
     "seaborn", "sklearn.cluster", "torch", "transformers.models.auto.modeling_auto",
     "transformers.models.bert.modeling_bert", "transformers.models.llama.modeling_llama",
     "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib_inline.backend_inline"]
)  # fmt: skip


def run_elsewhere(function: Callable, *arguments: object) -> None:
    """Run a module's function in a process of its own, and wait for its end.

    Parameters
    ----------
    function : callable
        Found by its name in a module (no lambda, nothing nested), as its arguments are pickled.

    Raises
    ------
    AssertionError
        It failed.
    """
    process = start_elsewhere(function, *arguments)
    process.join()
    assert process.exitcode == 0, process.exitcode
    process.close()


def share_server(address: str | None = None) -> str:
    """Start the process that all others are forked from, or use the one at an address."""
    if address is None:
        _SERVER.ensure_running()
    else:
        _SERVER._forkserver_address, _SERVER.ensure_running = address, lambda: None
        _SERVER._forkserver_alive_fd = os.dup(2)  # the server lives as long as who started it
    return _SERVER._forkserver_address


def start_elsewhere(function: Callable, *arguments: object):
    """Start a function in a process of its own; the process, once its work has begun."""
    here, there = _CONTEXT.Pipe(duplex=False)
    _SERVER.ensure_running()
    work = (there, _SERVER._forkserver_address, function, arguments)
    process = _CONTEXT.Process(target=_work, args=work)
    process.start()
    there.close()
    here.recv()
    here.close()
    return process


def _work(pipe, address: str, function: Callable, arguments: tuple) -> None:
    gc.freeze()  # the libraries: a search for garbage would look at, and copy, all of them
    # Its kernels come from the same process: one of its own would import all libraries again.
    _SERVER._forkserver_address, _SERVER.ensure_running = address, lambda: None
    pipe.send("begun")
    pipe.close()
    function(*arguments)
    sys.stdout.flush()


def run_fresh(code: str, output: Path, without: str = "no package") -> tuple[int, str]:
    """Run code in a process of its own that has not imported this project yet.

    Parameters
    ----------
    code : str
    output : Path
        File for all that it prints.
    without : str
        A package that cannot be imported there.

    Returns
    -------
    int, str
        Its exit status and all that it printed.
    """
    status = 0
    try:
        run_elsewhere(_execute_fresh, code, output, without)
    except AssertionError as error:
        status = error.args[0]
    return status, output.read_text(encoding="utf-8")


def build_book(folder: Path, **variables: str) -> tuple[int, str]:
    """Build a book as its command does, with all warnings; return the status and what it printed.

    The sets of strings of the process have another order than those of this one.
    """
    words = ["jupyter-book", "build", str(folder), "-W", "--keep-going"]
    code = (
        f"import os, sys; os.environ.update({variables}); sys.argv = {words}; "
        "from jupyter_book.cli.main import main; main()"
    )
    return run_fresh(code, folder / "printed")


def _execute_fresh(code: str, output: Path, without: str) -> None:
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    for name in list(sys.modules):
        if name.partition(".")[0] in ("psychometrics", "psychometrics_book", without):
            del sys.modules[name]
    sys.modules[without] = None
    exec(code, {"__name__": "__main__"})


def fork_kernels(patch: pytest.MonkeyPatch) -> None:
    """Fork the kernels of the notebooks that this process executes."""
    patch.setattr("jupyter_client.provisioning.local_provisioner.launch_kernel", _Kernel)


class _Kernel:
    """What Jupyter needs to have of a kernel's ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], env: dict[str, str], cwd: str | None = None, **_):
        work = (command[command.index("-f") :], env, cwd or os.getcwd())
        self._process = _CONTEXT.Process(target=_serve_kernel, args=work)
        self._process.start()
        self.pid = self._process.pid
        while os.getpgid(self.pid) != self.pid:  # Jupyter sends its signals to the whole group
            time.sleep(0.001)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode


def _serve_kernel(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    gc.freeze()
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    import matplotlib
    from ipykernel.kernelapp import IPKernelApp
    from matplotlib_inline.backend_inline import configure_inline_support

    matplotlib.use("module://matplotlib_inline.backend_inline")
    app = IPKernelApp.instance()
    app.initialize(arguments)
    configure_inline_support(app.shell, matplotlib.get_backend())
    app.start()
