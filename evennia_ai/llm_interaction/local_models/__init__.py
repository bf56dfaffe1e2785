"""Language models on the game's own machine, each in a process of its own.

`files` knows which are installed, `process` is the program that runs one, and `supervisor` starts
it, in the mind's process, and starts it again when it dies.
"""
