"""Turns: who answers a line, the tick, the agent loop and its tools, what they may cost."""
