"""The words of training that the command line offers, without loading anything."""

from typing import Literal

Device = Literal["auto", "cpu", "cuda", "mps"]

Which = Literal["reported", "last", "best"]
"""Weights of a run: those of the last epoch, of the best validation score, or the ones its protocol reports."""
