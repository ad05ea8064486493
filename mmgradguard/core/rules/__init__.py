"""Rules that judge a step, the same online and from a log; one file each."""
