"""Run every client, print a line for each, and fail if one reads other answers."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import psychometrics as pm
from psychometrics.serving.server import NullServer

# Packages of each client's script.
CLIENTS = {
    "openai_client": ["openai==3.57.0"],
    "rupsycho_client": ["rupsycho==1.0.0", "langchain-openai==0.3.35"],
    "inspect_client": ["inspect-ai==0.3.285", "openai==3.57.0"],
}
SECONDS = 120


def install(packages: list[str], folder: Path, seconds: float) -> str:
    """Install packages into a new environment; return why that was not possible."""
    if seconds < 1:
        return f"the {SECONDS} s are over"

    venv.create(folder, with_pip=True)
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    command += ["--disable-pip-version-check", "--retries", "1", *packages]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"not installed after {SECONDS} s, all clients together"

    errors = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
    return "; ".join(errors) if ran.returncode else ""


def read_answers(client: str, python: Path, url: str, model: str) -> list[int]:
    """Return the numbers of the options that a client reads for the items of the Mini-IPIP."""
    questionnaire = pm.load_questionnaire("ipip20")
    asked = {
        "url": url,
        "model": model,
        "items": [item.text for item in questionnaire.items],
        "options": [option.label for option in questionnaire.options],
    }
    script = Path(__file__).with_name(f"{client}.py")
    ran = subprocess.run(
        [python, "-I", script], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        sys.exit(f"{client}: failed with {model}.\n{ran.stderr}")
    return list(json.loads(ran.stdout.splitlines()[-1]))


def check(client: str, python: Path, url: str) -> None:
    """Compare the answers that a client reads with what the nulls answer by their definition."""
    for model, answer in {"agrees": 5, "middle": 3, "first-option": 1}.items():
        answers = read_answers(client, python, url, model)
        if answers != [answer] * 20:
            sys.exit(f"{client}: reads {answers} from {model}, not {answer} 20 times.")

    answers = read_answers(client, python, url, "random")
    if len(answers) != 20 or len(set(answers)) < 3:
        sys.exit(f"{client}: reads {answers} from random.")


def main() -> None:
    """Install and check every client."""
    end = time.monotonic() + SECONDS
    with tempfile.TemporaryDirectory() as folder, NullServer(port=0) as server:
        for client, packages in CLIENTS.items():
            place = Path(folder) / client
            reason = install(packages, place, end - time.monotonic())
            if reason:
                print(f"{client}: skipped ({reason})", flush=True)
                continue

            began = time.monotonic()
            check(client, place / "bin" / "python", server.url)
            print(f"{client}: 80 answers as expected, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
