"""What `recallbench init` writes: a policy, a starter set from the caller's own memories, a CI file."""
