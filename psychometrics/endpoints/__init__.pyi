from . import batches, client, endpoint, proxies, request_queue
from .endpoint import Endpoint

__all__ = ["Endpoint", "batches", "client", "endpoint", "proxies", "request_queue"]
