"""Words of a language: folding, stop words, stems, names. Every module uses these."""
