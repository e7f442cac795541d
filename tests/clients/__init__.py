"""Null respondents, asked through the clients of other tools.

``make clients`` installs each client from the package index into an environment of its own, starts
``psychometrics serve`` in this process, and checks the answers that the client reads. A client that
cannot be installed within two minutes, all together, is skipped with its reason. Each script here
runs in its client's environment.
"""
