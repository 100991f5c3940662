"""How a command line is read and answered."""
