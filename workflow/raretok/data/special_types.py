"""Special types, which every vocabulary of lines begins with: fairseq's, in its order."""

# The start of a line, padding, every line's last token, and what the vocabulary lacks.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
START, PAD, END, UNKNOWN = range(4)
