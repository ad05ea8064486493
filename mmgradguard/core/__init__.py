"""Types, statistics and rules that need nothing but the standard library."""
