"""Special types, the first of every vocabulary of lines, in fairseq's order."""

# Start of a line, padding, end of a line, and pieces outside the vocabulary.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
START, PAD, END, UNKNOWN = range(4)
