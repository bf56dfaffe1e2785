"""Cards, lorebooks and chats of other programs: what their files hold, read and written."""
