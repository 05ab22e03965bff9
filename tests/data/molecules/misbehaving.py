"""Work for other processes that goes wrong as RDKit's may; imports little, because those processes import it."""

import os
import signal
import time
from collections.abc import Sequence

from lspe.data.molecules.processes import Refused


def misbehave(smiles: Sequence[str]) -> list[str]:
    """Work in which some SMILES do what RDKit may do."""
    for one in smiles:
        if isinstance(one, Refused):
            continue
        text = one.lstrip("C")
        if text == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if text == "hang":
            time.sleep(60)
        if text == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    return [one.reason if isinstance(one, Refused) else "read" for one in smiles]
