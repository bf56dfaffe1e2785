"""What computes or waits for the assistants, in a process beside the game.

`mind.Mind` does the work, on threads of the process that makes it: the one that `process` runs, or
a command or test that has no Server. `remote.RemoteMind` is the Server's side of that process.
"""
