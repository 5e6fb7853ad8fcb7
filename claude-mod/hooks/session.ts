/** One session of Claude Code, and what its hooks do at each event. `Next` is the rest of the chain. */
import type { EngineInterface } from 'claude-code'

import type { StripMode } from '../types'
import { block, OPENING, signature } from './context'
import { agentResult, BEGIN_MS, LATE, outcomeOf, PROCESS_MS, resultText, runningText, taskOf, waitSeconds } from './delegation'
import type { Outcome, Task } from './delegation'
import { bullswarm, cacheFolder, makeFolder, troubleOf } from './program'
import type { Said } from './program'
import { keepStrip, known } from './store'
import { findVerdict, verdictLine } from './verdict'
import { follow, newWatch, soon } from './watch'
import type { Watch } from './watch'

export const PROVIDER = 'claude-code'
// Whether delegation is on is read from the state file at once; only a session whose bullswarm hasn't yet answered waits at all.
export const ANSWER_MS = 5000

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

const nothing = () => undefined

/** Begins, except in a worker of ours, however deep: that one is no caller, and the mod does nothing at all there.

Each action is caught by itself: one that a build of Claude Code refuses is left out, and the rest works. Where the environment
can't be read, nobody knows whether this is a worker, and nothing begins. */
export async function wake($: EngineInterface, session: Session, strip: unknown) {
  session.isAwake = await isCaller($).catch(() => false)
  if (!session.isAwake) return
  await announce($).catch(nothing)
  await keepStrip($, stripMode(strip)).catch(nothing)
  await registerCommand($).catch(nothing)
  await follow($, session.watch).catch(nothing)
  const state = await known($).catch(() => null)
  session.atStart = state === null ? '' : signature(state)
}

async function isCaller($: EngineInterface) {
  const depth = (await $.env.get('BULLSWARM_DEPTH'))?.trim() ?? ''
  return depth === '' || depth === '0'
}

async function registerCommand($: EngineInterface) {
  await $.command.register({
    name: 'bullswarm',
    description: 'Pools and running work of bullswarm',
    argumentHint: 'pools|runs|open|label|on|off|refresh|pane',
    immediate: true,
  })
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

export type Given = { task: Task; outcome: Outcome; tookMs: number }

/** What came of an Agent call that is delegated; undefined for one that is left alone, and where the person has delegation off. */
export async function handedOver($: EngineInterface, session: Session, call: Record<string, unknown>): Promise<Given | undefined> {
  const task = session.isAwake ? taskOf(call, session.permissionMode) : undefined
  if (task === undefined) return undefined
  const { state, isLate } = await soon($, session.watch, ANSWER_MS)
  if (isLate) return { task, outcome: { kind: 'not started', why: `bullswarm did not answer within ${ANSWER_MS / 1000} s` }, tookMs: 0 }
  return state?.delegation === true ? { task, ...(await give($, task)) } : undefined
}

/** Has another pool do the task, and waits for it as long as Claude Code lets a process live. */
async function give($: EngineInterface, task: Task): Promise<Omit<Given, 'task'>> {
  const startedAt = await $.clock.now()
  const waitSec = waitSeconds(await $.env.get('BULLSWARM_DELEGATION_WAIT_SEC').catch(nothing))
  const claim = `${await cacheFolder($)}/give-${crypto.randomUUID()}`
  const beginBefore = (startedAt + PROCESS_MS) / 1000
  const request = { ...task, cwd: await $.session.cwd(), waitSec, provider: PROVIDER, claim, beginBefore }
  const given = bullswarm($, ['delegation', 'give'], { stdin: JSON.stringify(request), timeoutMs: PROCESS_MS })
  const said = await unlessWithdrawn($, given, claim)
  const outcome = said === null ? LATE : outcomeOf(said.out, { trouble: said.code === 0 ? '' : troubleOf(said), isLate: said.isLate })
  // From here on nothing may throw: a hook that fails is passed over, and a second agent would do the same work.
  const endedAt = await $.clock.now().catch(() => startedAt)
  return { outcome, tookMs: endedAt - startedAt }
}

/** What the process said; null where it hadn't begun in time and never will, because the claim to the task is ours.

Making a folder is atomic: the process makes the same one before it starts anything, so that only one of the two does the task. A
process that has begun is waited for, and so is one of which nobody can tell. */
async function unlessWithdrawn($: EngineInterface, given: Promise<Said>, claim: string): Promise<Said | null> {
  let isOver = false
  void given.then(() => (isOver = true))
  const withdrawn = $.clock.sleep(BEGIN_MS).then(() => !isOver && makeFolder($, claim)).catch(() => false)
  return Promise.race([given, withdrawn.then(isOurs => (isOurs ? null : given))])
}

/** The Agent tool's result for work that was started. */
export const agentAnswer = (task: Task, outcome: Exclude<Outcome, { kind: 'not started' }>, tookMs: number) => {
  if (outcome.kind === 'running') {
    return agentResult({ ...outcome, prompt: task.prompt, text: runningText(outcome), verdict: {}, tookMs })
  }
  const found = findVerdict(outcome.verdict)
  const text = resultText(outcome, found ? verdictLine(found) : '', `worker-output-${crypto.randomUUID()}`)
  const { verdict } = outcome
  return agentResult({ prompt: task.prompt, text, run: found?.run ?? 'run', pool: found?.pool ?? '', verdict, tookMs })
}
