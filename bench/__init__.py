"""Side-by-side benchmarks against peers: `python -m bench SUITE [--json] [--quick]`."""
