"""A small virtual machine that is really booted, by the entry its boot files name: `make test-vm`.

Here the kernel command line is real, and so is what it does (the IOMMU mode); and so are memory limits. Not part of
`make test`.
"""
