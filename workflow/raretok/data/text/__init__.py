"""Language corpora: tokenizers, token ids, frequency groups, blocks."""
