from . import client, endpoint, request_queue
from .endpoint import Endpoint

__all__ = ["Endpoint", "client", "endpoint", "request_queue"]
