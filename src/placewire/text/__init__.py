"""Analyze text: objects' texts and subscriptions' words become the same terms.

- `analyzer`: the analyzers of the settings, text to term hashes by block
- `codepoints`: how each code point is lower-cased, split or joined
- `query`: parse `where` expressions and `keywords`
- `words`: the words behind term hashes, and how rare they are
"""
