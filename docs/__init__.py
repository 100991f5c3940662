"""What writes parts of the pages: ``generate`` the tables that the code knows, ``pictures`` the drawings."""
