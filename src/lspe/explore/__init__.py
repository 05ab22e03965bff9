"""The explorer: a local web page to look at encodings, and the same functions as a JSON API.

>>> from lspe.explore import create_app
>>> app = create_app()
"""

from lspe.explore.app import create_app

__all__ = ["create_app"]
