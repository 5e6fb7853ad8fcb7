"""Working trees: snapshots, git, worktrees and merging."""
