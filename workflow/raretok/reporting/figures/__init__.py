"""What figures of several papers share, and the command that draws one."""
