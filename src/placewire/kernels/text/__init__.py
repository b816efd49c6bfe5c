"""Hash terms, turn texts into term sets, look terms up, and find the words of hashes."""
