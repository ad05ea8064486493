"""The steps of `make setup`, with the standard library only."""
