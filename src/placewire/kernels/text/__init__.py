"""Turn text into term hashes, and work with sets of them.

- `tokens`: text to sorted, distinct term hashes in one pass over its UTF-8 bytes
- `siphash`: the keyed 64-bit hash of terms and ids
- `words`: find the words behind term hashes again, and sort them
- `term_map`: replace or drop terms (stems, stop words)
- `term_sets`: test whether an object's terms satisfy a compiled expression
- `hash_table`: hash tables as plain arrays, mapped from files
"""
