"""What the calling agents run at their own events: tiny, standard library only, silent whenever in doubt (design D12)."""
