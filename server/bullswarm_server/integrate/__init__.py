"""Sets up the agents that call bullswarm: what each of them needs, in the person's own files, and nothing else of theirs.

``parts`` are pure edits of texts (``json_edit``, ``toml_edit``, ``blocks``); ``claude``, ``codex``, ``opencode`` and
``grok`` say which parts an agent needs and where; ``plan`` puts them together, and ``apply`` writes.
"""
