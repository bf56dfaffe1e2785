"""``python -m evennia_ai.mind FOLDER``: the mind's process; settings come on standard input."""

from evennia_ai.mind.process import main

if __name__ == "__main__":
    main()
