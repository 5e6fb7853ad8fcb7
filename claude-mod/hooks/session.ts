/** One session of Claude Code, and what its hooks do at each event. `Next` is the rest of the chain. */
import type { EngineInterface } from 'claude-code'

import type { StripMode } from '../types'
import { block, OPENING, signature } from './context'
import { agentResult, outcomeOf, PROCESS_MS, resultText, runningText, taskOf, waitSeconds } from './delegation'
import type { Outcome, Task } from './delegation'
import { bullswarm, troubleOf } from './program'
import { keepStrip, known } from './store'
import { findVerdict, verdictLine } from './verdict'
import { follow, newWatch, sure } from './watch'
import type { Watch } from './watch'

export const PROVIDER = 'claude-code'

export type Session = {
  watch: Watch
  isAwake: boolean
  /** What the model was told last, and what there was to tell when the session began. */
  told: string
  atStart: string
  permissionMode: string
}

export const newSession = (): Session => ({
  watch: newWatch(),
  isAwake: false,
  told: '',
  atStart: '',
  permissionMode: '',
})

const stripMode = (value: unknown): StripMode => (value === 'runs' || value === 'off' ? value : 'full')

/** Begins, except in a worker of ours, however deep: that one is no caller, and the mod does nothing at all there. */
export async function wake($: EngineInterface, session: Session, strip: unknown) {
  const depth = (await $.env.get('BULLSWARM_DEPTH'))?.trim() ?? ''
  session.isAwake = depth === '' || depth === '0'
  if (!session.isAwake) return
  await announce($).catch(() => undefined)
  await keepStrip($, stripMode(strip))
  await $.command
    .register({
      name: 'bullswarm',
      description: 'Pools and running work of bullswarm',
      argumentHint: 'pools|runs|open|label|on|off|refresh|pane',
      immediate: true,
    })
    .catch(() => undefined)
  await follow($, session.watch)
  const state = await known($)
  session.atStart = state === null ? '' : signature(state)
}

/** The shell hook of the session's start may run before it can know of the mod: then it has told what there was to tell. */
export const noteStart = (session: Session, answered: unknown) => {
  if (JSON.stringify(answered ?? null).includes(OPENING)) session.told = session.atStart || 'told'
}

/** Tells the shell hooks of this session that the mod does what both would do. */
async function announce($: EngineInterface) {
  const env = await $.process.hookEnv()
  await $.env.set('BULLSWARM_MOD', env['CLAUDE_PID'] ?? '1')
}

/** What the model is to know with this prompt; empty when nothing changed that matters to it. */
export async function news($: EngineInterface, session: Session) {
  const state = session.isAwake ? await known($) : null
  if (state === null) return ''
  const now = signature(state)
  if (now === session.told) return ''
  if (session.told === 'told') {
    session.told = now
    return ''
  }
  session.told = now
  return block(state)
}

/** The task of an Agent call, where the person turned delegation on. */
export async function delegated($: EngineInterface, session: Session, call: Record<string, unknown>) {
  const state = session.isAwake ? await sure($, session.watch) : null
  return state?.delegation === true ? taskOf(call, session.permissionMode) : undefined
}

/** Has another pool do the task, and waits for it as long as Claude Code lets a process live. */
export async function give($: EngineInterface, task: Task): Promise<Outcome & { tookMs: number }> {
  const startedAt = await $.clock.now()
  const waitSec = waitSeconds(await $.env.get('BULLSWARM_DELEGATION_WAIT_SEC'))
  const request = { ...task, cwd: await $.session.cwd(), waitSec, provider: PROVIDER }
  const said = await bullswarm($, ['delegation', 'give'], { stdin: JSON.stringify(request), timeoutMs: PROCESS_MS })
  const outcome = outcomeOf(said.out, { trouble: said.code === 0 ? '' : troubleOf(said), isLate: said.isLate })
  return { ...outcome, tookMs: (await $.clock.now()) - startedAt }
}

/** The Agent tool's result for work that was started. */
export const agentAnswer = (task: Task, outcome: Exclude<Outcome, { kind: 'not started' }> & { tookMs: number }) => {
  if (outcome.kind === 'running') {
    return agentResult({ ...outcome, prompt: task.prompt, text: runningText(outcome), verdict: {} })
  }
  const found = findVerdict(outcome.verdict)
  const text = resultText(outcome, found ? verdictLine(found) : '', `worker-output-${crypto.randomUUID()}`)
  const { verdict, tookMs } = outcome
  return agentResult({ prompt: task.prompt, text, run: found?.run ?? 'run', pool: found?.pool ?? '', verdict, tookMs })
}
