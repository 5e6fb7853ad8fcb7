/** bullswarm inside Claude Code: the strip, the pane, `/bullswarm`, context for the model, delegated subagents, verdicts.

Each registration is caught by itself: one that a build of Claude Code refuses is left out, and the rest works. No tools are
registered, since an MCP server of the plugin's name makes that throw. */
import type { Register } from 'claude-code'

import { answer, closePane, goTo, openPane } from './commands'
import { paneBody } from './pane'
import { agentAnswer, handedOver, news, newSession, noteStart, wake } from './session'
import { picture } from './store'
import { hasRows, stripRows } from './strip'
import { findVerdict, isRunCommand, verdictLine } from './verdict'

const RUN_TOOL = /^mcp__(\w+_)?bullswarm__run$/

export const register: Register = (on, options) => {
  const session = newSession()

  try {
    on('session.start', async ($, e, next) => {
      await wake($, session, options['strip']).catch(() => undefined)
      return next(e)
    })
  } catch {}

  try {
    on('classic.SessionStart', async ($, e, next) => {
      const answered = await next(e)
      noteStart(session, answered)
      return answered
    })
  } catch {}

  try {
    on('command.run', { command: 'bullswarm' }, async ($, e, next) =>
      session.isAwake ? { text: await answer($, session.watch, e.args) } : next(e),
    )
  } catch {}

  try {
    on('prompt.submit', async ($, e, next) => {
      const said = e.command === undefined ? await news($, session) : ''
      return next(said === '' ? e : { ...e, context: [...(e.context ?? []), said] })
    })
  } catch {}

  try {
    on('classic.UserPromptSubmit', async ($, e, next) => {
      session.permissionMode = e.permission_mode ?? ''
      return next(e)
    })
  } catch {}

  try {
    on('tool.call', { tool: 'Agent' }, async ($, e, next) => {
      const given = await handedOver($, session, { ...e })
      if (given === undefined) return next(e)
      const { task, outcome, tookMs } = given
      if (outcome.kind !== 'not started') return { result: agentAnswer(task, outcome, tookMs) }
      $.ui.toast(`bullswarm: not delegated (${outcome.why}); Claude's own subagent does it`)
      const ran = await next(e)
      if (ran.deny !== undefined || ran.isError === true) return ran
      const note = `bullswarm: this subagent was not delegated (${outcome.why}); your own does the task`
      return { ...ran, context: [...(ran.context ?? []), note] }
    })
  } catch {}

  try {
    on('tool.call', { tool: 'Bash' }, async ($, e, next) => {
      const ran = await next(e)
      if (!session.isAwake || ran.deny !== undefined || !isRunCommand(e.command)) return ran
      const found = findVerdict(ran.text) ?? findVerdict(ran.result)
      return found === undefined ? ran : { ...ran, context: [...(ran.context ?? []), verdictLine(found)] }
    })
  } catch {}

  try {
    on('tool.call', { tool: RUN_TOOL }, async ($, e, next) => {
      const ran = await next(e)
      if (!session.isAwake || ran.deny !== undefined) return ran
      const found = findVerdict(ran.text) ?? findVerdict(ran.result)
      return found === undefined ? ran : { ...ran, context: [...(ran.context ?? []), verdictLine(found)] }
    })
  } catch {}

  try {
    on('ui.render', { component: 'AbovePrompt' }, async ($, e, next) => {
      const { strip: mode, state, trouble, now } = await picture($)
      if (e.props.hasSurvey || mode === 'off') return next(e)
      const { Box, Text, Button } = $.ui.resolve(e)
      if (state === null || !hasRows(state, mode)) {
        return trouble === '' ? next(e) : <Text dimColor wrap="truncate-end">{trouble}</Text>
      }
      const open = (run: { runId: string }) => openPane($, { page: 'run', run: run.runId })
      return stripRows({ Box, Text, Button }, state, { mode, columns: e.props.bodyColumns, now, open })
    })
  } catch {}

  try {
    on('ui.render', { component: 'Pane', requestId: 'bullswarm' }, async ($, e) => {
      const { Box, Text, Button } = $.ui.resolve(e)
      return paneBody({ Box, Text, Button }, {
        ...(await picture($)),
        columns: e.props.bodyColumns,
        go: view => goTo($, view),
        close: () => closePane($),
      })
    })
  } catch {}
}
