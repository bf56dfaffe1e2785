"""Messages, audiences, call and result pairs; the live history, the archive, the proof."""
