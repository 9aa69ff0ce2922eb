"""The commands of `python -m tensord`, one file per area."""
