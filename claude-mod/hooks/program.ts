/** Starts `bullswarm` and reads its state file: the only places where the mod touches the machine. */
import type { EngineInterface } from 'claude-code'

import type { ModState, StepDetail } from '../types'
import { COMMAND } from './command'
import { clipped, oneLine } from './words'

const SCHEMA = 'bullswarm.mod-state.v1'

export type Said = { code: number; out: string; err: string; isLate: boolean }

// How Claude Code words it (2.1.332): "… $.process.run(COMMAND) failed to start: ENOENT: …" and "… aborted: still running after
// 700ms". What a command is called, or where it stands, says nothing.
const NEVER_STARTED = /^failed to start: |\b(ENOENT|EACCES|EPERM|ENOEXEC|ENOTDIR|EISDIR|ELOOP|E2BIG|EMFILE|ENFILE|EAGAIN|ENOMEM)\b/

/** What an error of a start means; one that tells of no failed start leaves open whether the program worked. Pure. */
export const failureOf = (error: string): Pick<Said, 'code' | 'isLate'> => {
  const named = `.run(${COMMAND}) `
  const at = error.indexOf(named)
  const said = at < 0 ? error : error.slice(at + named.length)
  return NEVER_STARTED.test(said) ? { code: 127, isLate: false } : { code: 124, isLate: true }
}

/** Runs `bullswarm` with these words; one that can't be started is code 127, one that takes too long 124. */
export async function bullswarm(
  $: EngineInterface,
  words: readonly string[],
  given: { stdin?: string; timeoutMs?: number } = {},
): Promise<Said> {
  try {
    const env = await hookEnv($)
    const ran = await $.process.run([COMMAND, ...words], { env, timeoutMs: 30_000, ...given })
    return { code: ran.exitCode, out: ran.stdout, err: ran.stderr, isLate: false }
  } catch (error) {
    return { ...failureOf(String(error)), out: '', err: String(error) }
  }
}

/** The variables that name the session; without them bullswarm works too. */
async function hookEnv($: EngineInterface): Promise<Record<string, string>> {
  return $.process.hookEnv().catch(() => ({}))
}

/** What is wrong and how to mend it, in one quiet line. */
export const troubleOf = (said: Said) => {
  if (said.code === 127) {
    return `bullswarm: the command ${COMMAND} can't be started · fix: uv tool install bullswarm, then /bullswarm refresh`
  }
  const why = clipped(oneLine(said.err.replace(/^bullswarm: /, '')) || `exit ${said.code}`, 120)
  return `bullswarm is broken: ${why} · fix: run bullswarm doctor, then /bullswarm refresh`
}

/** Makes a folder; true only if it was made, and by this very call. */
export async function makeFolder($: EngineInterface, path: string) {
  try {
    return (await $.process.run(['mkdir', path], { timeoutMs: 30_000 })).exitCode === 0
  } catch {
    return false
  }
}

/** The folder of what bullswarm can do without. */
export async function cacheFolder($: EngineInterface) {
  const chosen = await $.env.get('BULLSWARM_HOME')
  const home = (await $.env.get('HOME')) ?? ''
  const root = chosen ? chosen.replace(/^~(?=\/|$)/, home) : `${home}/.bullswarm`
  return `${root}/cache`
}

/** The file that bullswarm replaces on every change. */
export async function statePath($: EngineInterface) {
  return `${await cacheFolder($)}/mod-state.json`
}

/** The state in a text; undefined for anything else. */
export const parsedState = (text: string): ModState | undefined => {
  try {
    const value = JSON.parse(text) as ModState
    const isOurs = value.schemaVersion === SCHEMA && Array.isArray(value.pools) && Array.isArray(value.runs)
    return isOurs && Array.isArray(value.verdicts) ? value : undefined
  } catch {
    return undefined
  }
}

/** One step from close by; null where it can't be had. */
export async function stepDetail($: EngineInterface, run: string, step: string): Promise<StepDetail | null> {
  const said = await bullswarm($, ['mod-state', '--run', run, '--step', step])
  try {
    return said.code === 0 ? (JSON.parse(said.out) as StepDetail) : null
  } catch {
    return null
  }
}
