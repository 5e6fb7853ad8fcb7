"""The requests that an agent sends beside its task, such as one for the session's title."""

from tests.agents.scripted_model.request import ModelRequest


def is_side_request(request: ModelRequest) -> bool:
    """Tell whether an agent asks for a title or a summary.

    Such a request offers the model no tools (OpenCode), or forces it to use the only one (Grok's `session_title`).
    """
    if not isinstance(request.body, dict):
        return False
    forced = isinstance(request.body.get("tool_choice"), dict)
    return not request.tools or (forced and len(request.tools) == 1)
