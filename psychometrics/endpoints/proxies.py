"""Choose the proxy of a request from environment variables only.

An HTTP client that trusts the whole environment also reads ``~/.netrc``, and sends the user name
and password that this file has for a host to any server at the host's address. This module
therefore reads only the variables, never that file.
"""

from __future__ import annotations

from urllib import request
from urllib.parse import urlsplit

from ..exceptions import RespondentError


def _proxy_for(address: str) -> str | None:
    """Return the proxy for an address, or None if requests go to it directly.

    The variable for the address's scheme, ``HTTPS_PROXY`` or ``HTTP_PROXY``, applies; if it is not
    set, ``ALL_PROXY`` applies. No proxy is used if ``NO_PROXY`` names the host.

    Raises
    ------
    RespondentError
        The variable's value is not the address of a proxy, or the proxy is of an unsupported kind.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"ALL_PROXY": "proxy.test:3128"}, clear=True):
    ...     _proxy_for("https://models.test/v1")
    'http://proxy.test:3128'
    """
    url = urlsplit(address)
    proxies = request.getproxies_environment()
    variable = url.scheme if proxies.get(url.scheme) else "all"
    proxy = proxies.get(variable)

    host = url.netloc.rpartition("@")[2]
    # typeshed omits the function
    if not proxy or request.proxy_bypass_environment(host, proxies):  # type: ignore[attr-defined]
        return None

    proxy = proxy if "://" in proxy else f"http://{proxy}"
    place = f"{variable}_proxy".upper()
    ways = f"or exclude the host by NO_PROXY={url.hostname}"
    scheme = proxy.partition("://")[0]

    if scheme not in ("http", "https"):
        raise RespondentError(
            f"{place}: requests cannot go through a proxy of the kind {scheme}://; "
            f"name an http:// proxy, {ways}."
        )

    if not _is_address(proxy):  # not shown, since it may hold a password
        raise RespondentError(f"{place}: not a proxy's address; write http://host:port, {ways}.")
    return proxy


def _is_address(proxy: str) -> bool:
    try:
        url = urlsplit(proxy)
        return bool(url.hostname) and url.port != 0
    except ValueError:
        return False
