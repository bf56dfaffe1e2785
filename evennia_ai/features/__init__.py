"""The features that ship, one file or folder each; `evennia_ai.feature` says what a feature is."""
