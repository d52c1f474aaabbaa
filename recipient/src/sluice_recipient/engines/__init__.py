"""One module for each engine; each imports its library only when it is used."""
