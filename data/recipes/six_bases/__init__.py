"""The study of ``data/plans/six-bases.yml``: respondents trained and asked on six bases.

``plan`` says what is asked of whom, ``progress`` what is done; ``runs`` makes what is missing.
"""
