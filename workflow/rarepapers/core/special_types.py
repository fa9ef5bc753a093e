"""Special types, the first of every vocabulary of lines, in fairseq's order, and the mark of pieces within a word."""

# Start of a line, padding, end of a line, and pieces outside the vocabulary.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
START, PAD, END, UNKNOWN = range(4)
# Ends a piece that is not the last of its word, as subword-nmt writes it.
SEPARATOR = "@@"
