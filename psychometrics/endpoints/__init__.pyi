from . import batches, client, endpoint, request_queue
from .endpoint import Endpoint

__all__ = ["Endpoint", "batches", "client", "endpoint", "request_queue"]
