"""English words, names, numbers and sentences, for every module that reads text."""
