"""Reading logs of trainings: parsers, and what the rows say. Standard library only."""
