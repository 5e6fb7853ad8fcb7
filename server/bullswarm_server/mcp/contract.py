"""The contract of programs, as agents read it."""

from __future__ import annotations

from bullswarm_core.program.model import PROGRAM_VERSION

TEXT = f"""# {PROGRAM_VERSION}

A program is one JSON object: steps that depend on each other, each done by one worker on the pool with most quota to spare.
A step that fails is tried once more; what still fails comes back to you, and only what depends on it waits. Evidence commands
run as the person, unconfined, in the working folder.

Top level: `schemaVersion` ("{PROGRAM_VERSION}"), `steps` (one or more), `gates`, `loops`, `defaults` (lane, effort, reasoning,
retry, timeBox). Nothing else. Steps, gates and loops share one id space; ids are kebab-case.

## Step
| field | default | rule |
|---|---|---|
| id | required | kebab-case, unique |
| prompt | required | self-contained: nothing is substituted, so write out paths |
| dependsOn | [] | ids of steps, gates or loops; a step inside a loop is named only by steps of that loop |
| lane | defaults.lane, else analyze | analyze, build or chore; analyze writes nothing |
| effort | defaults.effort, else the lane's (medium, medium, low) | high, medium or low; a chore is low |
| reasoning | the person's choice | low, medium, high, xhigh, max or default |
| model | - | an exact model id; only pools that run it are eligible, nothing is substituted |
| route | - | `{{"pools": {{"use": [], "avoid": []}}, "providers": {{"use": [], "avoid": []}}, "independentOf": [step ids]}}` |
| phase, label | -, id | one line each, at most 80 and 200 characters; for display |
| files | [] | exact relative files that the step owns; no folders, no globs |
| answer | - | a JSON schema: the step's answer is typed and checked |
| evidence | [] | at most 5 checks that bullswarm runs itself, in order (below) |
| deliverable | by lane | files, report, data, media, outward, or {{type, paths}}; data and media need paths |
| blindTo | [] | earlier steps whose output this one must not see |
| retry | defaults.retry, else 1 | 0 or 1 |
| timeBox | computed | whole minutes, 0 to 240 |

## Evidence
`{{"type": "command", "cmd": "pytest -q tests/a.py"}}` must exit 0. `{{"type": "schema", "file": "out.json", "schema": {{…}}}}`
checks a file, or `$output` for the final reply; `format` is json or jsonl. Each takes `timeoutSec`, 1 to 600, else 120.

## Gate
`id`, `dependsOn` (one or more), `when` (a condition; without it the person decides), `note` (one line).

## Loop
`id`, `steps` (one or more), `until` (a condition on one of them), `maxRounds` (1 to 5). A step is in at most one loop.

## Condition
`{{"step": id, "field": name, "equals": true}}` (a boolean property that the step's answer schema requires) or
`{{"step": id, "evidence": "passed"}}`.

## Example
```json
{{"schemaVersion": "{PROGRAM_VERSION}",
 "steps": [{{"id": "review", "lane": "analyze", "prompt": "In /home/me/app, review src/parser.py for off-by-one errors."}}]}}
```
"""
