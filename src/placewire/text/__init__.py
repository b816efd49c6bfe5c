"""Analyze text: turn objects' texts and subscriptions' words into the same terms.

- `analyzer`: the analyzers of the settings, text to term hashes by block
- `codepoints`: how each code point is lower-cased, split or joined
- `query`: parse `where` expressions and `keywords`
- `words`: the words of term hashes, and how rare they are
"""
