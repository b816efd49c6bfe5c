"""Text analysis: analyzers turn texts into terms, the query parser reads `where` and `keywords`.

`analyzer.py` has the analyzers, `codepoints.py` the Unicode tables of their kernels. `words.py`
finds the words of term hashes, and `lexicon.py` weighs terms by how rare they are.
"""
