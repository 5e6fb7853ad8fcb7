"""The requests that an agent sends beside its task, such as one for the session's title."""

from tests.agents.scripted_model.request import ModelRequest


def is_side_request(request: ModelRequest) -> bool:
    """Tell whether an agent asks for a title or a summary: such a request offers the model no tools."""
    return isinstance(request.body, dict) and not request.tools
