"""Writing files: whole or not at all, and a piece at a time where they are long."""

from lspe.files.text import append_row, write_json, write_table, write_text
from lspe.files.whole import check_folder_of, check_picture, clear_unfinished, complete_or_nothing, make_folder

__all__ = [
    "append_row",
    "check_folder_of",
    "check_picture",
    "clear_unfinished",
    "complete_or_nothing",
    "make_folder",
    "write_json",
    "write_table",
    "write_text",
]
