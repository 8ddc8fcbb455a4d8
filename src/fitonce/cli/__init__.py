"""The command-line program: each command parses, makes one library call and writes."""
