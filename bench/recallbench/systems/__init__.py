"""Systems under test and what they answer."""
