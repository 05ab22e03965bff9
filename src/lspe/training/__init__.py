"""From a preset and a data set to a run folder."""
