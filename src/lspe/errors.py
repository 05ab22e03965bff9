"""What can be put right by the person who uses the package."""


class UserError(ValueError):
    """Something the user can put right. The message names the place, the value and the fix.

    The command line prints it without a traceback.
    """
