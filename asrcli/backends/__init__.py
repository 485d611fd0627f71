"""Where windows are transcribed: in this process, or elsewhere."""
