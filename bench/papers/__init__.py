"""What of the papers that Placewire builds on holds here: a package for each paper."""
