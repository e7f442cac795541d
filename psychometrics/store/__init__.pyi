from . import answers, folder, replies, urls, watching
from .answers import CHUNK, StoredAnswers, compact, key_of, manifests
from .watching import watched

__all__ = [
    "CHUNK",
    "StoredAnswers",
    "answers",
    "compact",
    "folder",
    "key_of",
    "manifests",
    "replies",
    "urls",
    "watched",
    "watching",
]
