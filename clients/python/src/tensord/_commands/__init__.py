"""The commands of `python -m tensord`, an area a file."""
