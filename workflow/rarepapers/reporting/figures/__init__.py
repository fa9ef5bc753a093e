"""Parts that figures of several papers share, and the command that draws a figure."""
