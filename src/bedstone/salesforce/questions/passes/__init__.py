"""The passes of the interpreter: each reads one kind of phrase and consumes its words."""
