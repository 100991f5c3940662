"""What each command does: one flat file per noun."""
