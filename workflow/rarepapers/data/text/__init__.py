"""Language corpora: token ids, frequency groups, blocks, pairs of similar words."""
