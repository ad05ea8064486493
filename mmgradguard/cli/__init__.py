"""The command line: arguments, exit codes, and one line on stderr when it fails."""
