"""The one error that bad data gives."""


class DataError(ValueError):
    """Input that cannot be used. The message names the file, the place in it, the value, and what to do."""


class CorruptFileError(DataError):
    """A packed file that is truncated, altered, or not a packed file at all."""
