"""A model on 127.0.0.1 that answers the real agent CLIs from a script.

with ScriptedModel([call_tool("Write", file_path="a.txt", content="hi"), say("Done.")]) as model:
    run_the_cli_with(base_url=model.url)
assert len(model.prompts()) == 1
"""

from tests.agents.scripted_model.request import ModelRequest
from tests.agents.scripted_model.scenario import (
    Answer,
    DropConnection,
    Fail,
    HangBeforeHeaders,
    HangMidStream,
    Later,
    Script,
    ToolCall,
    Turn,
    Usage,
    call_tool,
    call_tools,
    drop_connection,
    fail,
    hang_before_headers,
    hang_mid_stream,
    later,
    say,
    say_nothing,
)
from tests.agents.scripted_model.server import ScriptedModel

__all__ = [
    "Answer",
    "DropConnection",
    "Fail",
    "HangBeforeHeaders",
    "HangMidStream",
    "Later",
    "ModelRequest",
    "Script",
    "ScriptedModel",
    "ToolCall",
    "Turn",
    "Usage",
    "call_tool",
    "call_tools",
    "drop_connection",
    "fail",
    "hang_before_headers",
    "hang_mid_stream",
    "later",
    "say",
    "say_nothing",
]
