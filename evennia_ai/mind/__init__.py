"""What computes or waits for the assistants: in the Server, or in a process of its own."""
