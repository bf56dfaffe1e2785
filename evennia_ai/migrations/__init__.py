"""Changes of the app's table."""
