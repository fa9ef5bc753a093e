"""rarepapers: the pipeline that reproduces four papers on rare tokens; its losses are the library raretok."""
