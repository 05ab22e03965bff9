"""When a training has come to its end."""

from lspe.experiment.protocol import FastProtocol, PaperProtocol


def reason_to_stop(
    protocol: PaperProtocol | FastProtocol, *, epoch: int, seconds: float, lr: float, lowest: int = 0
) -> str:
    """Why training ends after ``epoch`` epochs and ``seconds``; or ''.

    ``lr`` is the next epoch's learning rate, ``lowest`` the epoch of the lowest validation loss.
    """
    if protocol.goes_by_steps and protocol.patience is not None and epoch - lowest >= protocol.patience:
        return f"the validation loss had not fallen for {protocol.patience} epochs"
    if not protocol.goes_by_steps and lr < protocol.min_lr:
        return "the learning rate fell below its minimum"
    if protocol.max_hours is not None and seconds > 3600 * protocol.max_hours:
        return f"{protocol.max_hours:g} hours had passed"
    return "all epochs were done" if epoch >= protocol.max_epochs else ""
