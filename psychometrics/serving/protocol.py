"""Requests and replies in the form of OpenAI's chat completions and completions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_kinds
from ..exceptions import ParameterError
from .forms import Answer, fill_schema, write_reply
from .prompts import find_questions
from .respondents import Answering, Respondents, request_seed

_MOST_REPLIES = 128
_MOST_LOGPROBS = 20
_MOST_MESSAGES = 1000
# Text before the first letter belongs to a token, as in most models.
_TOKEN = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


class Written(NamedTuple):
    """A reply, with the questions that it answers.

    Parameters
    ----------
    text : str
        The reply's text, or the arguments of the tool that it calls.
    answers : tuple of Answer
    tool : str
        The name of the tool that it calls; empty if it calls none.
    finish_reason : str
    """

    text: str
    answers: tuple[Answer, ...]
    tool: str = ""
    finish_reason: str = "stop"


def write_replies(
    respondents: Respondents, request: dict[str, Any], draw: int = 0
) -> list[Written]:
    """Return the replies to a request for chat completions or completions.

    Replies depend on the request's content and seed alone.

    Parameters
    ----------
    respondents : Respondents
    request : dict
        The request: ``model``, ``messages`` or ``prompt``, and ``n``, ``seed``,
        ``response_format``, ``tools``, ``tool_choice``, ``max_tokens`` and
        ``max_completion_tokens`` if there are any. Other fields do not matter.
    draw : int
        A number that gives a repeated request another draw.

    Raises
    ------
    ParameterError
        A field is missing or has another form, or the model is unknown.

    Examples
    --------
    >>> message = {"role": "user", "content": "Rate from 1 to 5: I am calm."}
    >>> request = {"model": "agrees", "messages": [message], "n": 2}
    >>> [reply.text for reply in write_replies(Respondents(), request)]
    ['5', '5']
    """
    model = _field(request, "model", str, "")
    respondents.check(model)
    count = _field(request, "n", int, 1)
    seed = _field(request, "seed", int, 0)
    limit = _field(request, "max_tokens", int, 0)
    limit = _field(request, "max_completion_tokens", int, limit)
    if not 1 <= count <= _MOST_REPLIES:
        raise ParameterError(f"n: {count} replies; ask for 1 to {_MOST_REPLIES}.")

    messages = _messages(request)
    texts = [text for role, text in messages if role != "assistant"] or [""]
    questions = find_questions(texts[-1], "\n".join(texts[:-1]))
    schema, tool = _schema_of(request, bool(questions))
    last = next((text for role, text in messages[::-1] if role == "assistant"), "")

    content = json.dumps(messages), json.dumps(schema, sort_keys=True)

    replies = []
    for number in range(count):
        draws = request_seed(model, seed, draw, number, *content)
        answering = Answering(respondents, model, draws, last.strip())
        if schema is None:
            text = write_reply(questions, answering, "\n".join(texts))
        else:
            value = fill_schema(schema, questions, answering, count)
            text = json.dumps(value, ensure_ascii=False)

        tokens = _TOKEN.findall(text)
        is_cut = 0 < limit < len(tokens)
        reason = "tool_calls" if tool else "length" if is_cut else "stop"
        text = "".join(tokens[:limit]) if is_cut else text
        replies.append(Written(text, tuple(answering.answers), tool, reason))

    return replies


def chat_completion(request: dict[str, Any], replies: Sequence[Written]) -> dict[str, Any]:
    """Return the body of a chat completion.

    Examples
    --------
    >>> body = chat_completion({"model": "agrees", "prompt": ""}, [Written("5", ())])
    >>> body["choices"][0]["message"]["content"]
    '5'
    """
    choices = []
    for index, reply in enumerate(replies):
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.tool:
            function = {"name": reply.tool, "arguments": reply.text}
            call = {"id": f"call_{index}", "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [call]}

        logprobs = None
        if request.get("logprobs"):
            logprobs = {"content": _chat_logprobs(reply, request), "refusal": None}
        choice = {"index": index, "message": message, "finish_reason": reply.finish_reason}
        choices.append(choice | {"logprobs": logprobs})

    return _body(request, "chat.completion", choices, replies)


def completion(request: dict[str, Any], replies: Sequence[Written]) -> dict[str, Any]:
    """Return the body of a completion, which continues a text.

    Examples
    --------
    >>> completion({"model": "agrees", "prompt": ""}, [Written("5", ())])["choices"][0]["text"]
    ' 5'
    """
    choices = []
    for index, reply in enumerate(replies):
        text = f" {reply.text}"
        logprobs = None
        if request.get("logprobs") is not None:
            rows = _chat_logprobs(reply._replace(text=text), request)
            tokens = [row["token"] for row in rows]
            tops = [{top["token"]: top["logprob"] for top in row["top_logprobs"]} for row in rows]
            logprobs = {
                "tokens": tokens,
                "token_logprobs": [row["logprob"] for row in rows],
                "top_logprobs": tops,
                "text_offset": np.cumsum([0, *map(len, tokens)])[:-1].tolist(),
            }
        choice = {"index": index, "text": text, "finish_reason": reply.finish_reason}
        choices.append(choice | {"logprobs": logprobs})

    return _body(request, "text_completion", choices, replies)


def chunks(request: dict[str, Any], body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a reply that is streamed.

    Examples
    --------
    >>> body = chat_completion({"model": "agrees", "prompt": ""}, [Written("5", ())])
    >>> [part["choices"][0]["delta"].get("content") for part in chunks({}, body)]
    ['', '5', None]
    """
    is_chat = body["object"] == "chat.completion"
    name = "chat.completion.chunk" if is_chat else body["object"]
    head = {key: body[key] for key in ("id", "created", "model")} | {"object": name}

    for choice in body["choices"]:
        index = choice["index"]
        if not is_chat:
            yield head | {"choices": [choice]}
            continue

        message = choice["message"]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if message.get("tool_calls"):
            calls = [call | {"index": k} for k, call in enumerate(message["tool_calls"])]
            deltas.append({"tool_calls": calls})
        else:
            deltas += [{"content": token} for token in _TOKEN.findall(message["content"])]

        deltas.append({})
        for number, delta in enumerate(deltas):
            piece = {"index": index, "delta": delta, "finish_reason": None}
            if number == len(deltas) - 1:
                piece["finish_reason"] = choice["finish_reason"]
            elif number == 1:
                piece["logprobs"] = choice["logprobs"]
            yield head | {"choices": [piece]}

    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield head | {"choices": [], "usage": body["usage"]}


def count_tokens(request: dict[str, Any], replies: Sequence[Written]) -> dict[str, int]:
    """Return the numbers of words and signs in a request and in its replies."""
    n_read = sum(len(_TOKEN.findall(text)) for _, text in _messages(request))
    n_written = sum(len(_TOKEN.findall(reply.text)) for reply in replies)
    return {
        "prompt_tokens": n_read,
        "completion_tokens": n_written,
        "total_tokens": n_read + n_written,
    }


def _field(request: dict[str, Any], name: str, kind: Any, default: Any) -> Any:
    """Return a field of a request, or the default if it is missing or null."""
    value = request.get(name)
    if value is None:
        return default
    check_kinds({name: value}, {name: kind})
    return value


def _messages(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the role and the text of each message; a text to continue is a user's message."""
    prompt = request.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if isinstance(prompt, str):
        return [("user", prompt)]

    field = request.get("messages")
    messages = field if isinstance(field, list) else []
    has_objects = all(isinstance(message, dict) for message in messages)
    if not (has_objects and 0 < len(messages) <= _MOST_MESSAGES):
        raise ParameterError(
            "messages: not a list of messages; give a list of objects with role and content "
            "(at /completions, prompt: one text)."
        )
    texts = []
    for message in messages:
        content = message.get("content")
        if not isinstance(content, str):
            pieces = content if isinstance(content, list) else []
            content = "\n".join(
                str(p["text"]) for p in pieces if isinstance(p, dict) and "text" in p
            )
        texts.append((str(message.get("role")), content))

    return texts


def _schema_of(request: dict[str, Any], has_questions: bool) -> tuple[Any, str]:
    """Return the JSON schema of the reply, if there is one, and the tool that it is for.

    A tool that need not be called is called only if the prompt has no options and the tool has.
    """
    form = request.get("response_format")
    kind = form.get("type") if isinstance(form, dict) else form
    if kind not in (None, "text", "json_object", "json_schema"):
        raise ParameterError(
            f"response_format: unknown type {kind!r:.80}; use text, json_object or json_schema."
        )
    if isinstance(form, dict) and kind == "json_schema":
        schema = form.get("json_schema")
        return (schema.get("schema", {}) if isinstance(schema, dict) else {}), ""

    tools = request.get("tools")
    functions = [
        tool["function"]
        for tool in (tools if isinstance(tools, list) else [])
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
    ]
    choice = request.get("tool_choice", "auto")
    if isinstance(choice, dict):
        named = choice.get("function")
        name = named.get("name") if isinstance(named, dict) else None
        functions = [function for function in functions if function.get("name") == name]
        if not functions:
            raise ParameterError(f"tool_choice: no tool {name!r:.80}; name one of tools.")
    elif choice == "none" or (choice != "required" and has_questions):
        functions = []
    elif choice != "required":
        functions = [f for f in functions if "enum" in json.dumps(f.get("parameters"))]

    if not functions:
        return None, ""
    return functions[0].get("parameters", {}), str(functions[0].get("name", ""))


def _body(
    request: dict[str, Any], kind: str, choices: list[dict[str, Any]], replies: Sequence[Written]
) -> dict[str, Any]:
    identity = request_seed(json.dumps(request, sort_keys=True, default=str))
    return {
        "id": f"null-{identity:x}",
        "object": kind,
        "created": 0,  # the same request has the same reply, so the time is left out
        "model": request["model"],
        "choices": choices,
        "usage": count_tokens(request, replies),
    }


def _chat_logprobs(reply: Written, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the log-probability of each token; a token that begins an answer has alternatives."""
    limit = request.get("top_logprobs")
    if not isinstance(limit, int):
        limit = request["logprobs"] if isinstance(request.get("logprobs"), int) else 0
    limit = min(max(limit, 0), _MOST_LOGPROBS)

    pending = list(reply.answers)
    rows = []
    for token in _TOKEN.findall(reply.text):
        shares = {token: 1.0}
        word = token.strip()
        if pending and word and pending[0].label.startswith(word):
            answer = pending.pop(0)
            space = token.removesuffix(word)
            shares = {}
            for choice, share in zip(answer.question.choices, answer.shares.tolist(), strict=True):
                match = _TOKEN.match(choice.label)
                beginning = space + (match[0].strip() if match else choice.label)
                shares[beginning] = shares.get(beginning, 0.0) + share

        ranked = sorted(shares.items(), key=lambda pair: -pair[1])[:limit]
        top = [_row(other, share) for other, share in ranked]
        rows.append(_row(token, shares.get(token, 1.0)) | {"top_logprobs": top})

    return rows


def _row(token: str, share: float) -> dict[str, Any]:
    logprob = float(np.log(max(share, 1e-12)))
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
