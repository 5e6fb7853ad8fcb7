/** What `/bullswarm` says and does. */
import type { EngineInterface } from 'claude-code'

import type { ModState, View } from '../types'
import { bullswarm, troubleOf } from './program'
import { keepStrip, keepView, picture } from './store'
import { runWords } from './strip'
import type { Watch } from './watch'
import { renew, showDetail, sure } from './watch'

const PANE = 'bullswarm'
const HELP =
  'bullswarm pools | runs | open [RUN] [STEP] | label POOL [NAME] | on | off | refresh | pane | strip runs|full|off'

/** Opens the pane at a view. */
export async function openPane($: EngineInterface, view: View) {
  await keepView($, view)
  await $.ui.open({ id: PANE, title: 'bullswarm', focus: true, closeOnEscape: true, rows: 24, columns: 64 })
  if (view.page === 'step') await showDetail($, view.run, view.step)
}

/** Goes on to another view of the open pane. */
export async function goTo($: EngineInterface, view: View) {
  await keepView($, view)
  if (view.page === 'step') await showDetail($, view.run, view.step)
}

export function closePane($: EngineInterface) {
  return $.ui.close({ id: PANE })
}

/** Answers one `/bullswarm …`. */
export async function answer($: EngineInterface, watch: Watch, args: string): Promise<string> {
  const [word = '', ...rest] = args.trim().split(/\s+/)
  switch (word) {
    case '':
    case 'pane':
      return opened($, { page: 'home' })
    case 'pools':
      return printed($, ['pools'])
    case 'runs':
      return runs($, watch)
    case 'open':
      return open($, watch, rest)
    case 'label':
      return label($, watch, rest)
    case 'on':
    case 'off':
      return delegation($, watch, word)
    case 'refresh':
      await renew($, watch, ['--refresh'])
      return (await picture($)).trouble || 'bullswarm: read anew'
    case 'strip':
      return strip($, rest[0] ?? '')
    default:
      return `unknown: ${word} · /${HELP}`
  }
}

async function opened($: EngineInterface, view: View) {
  try {
    await openPane($, view)
    return 'pane opened'
  } catch {
    return 'no pane can be opened here'
  }
}

async function printed($: EngineInterface, words: readonly string[]) {
  const said = await bullswarm($, words)
  return said.code === 0 ? said.out.trimEnd() || said.err.trim() : troubleOf(said)
}

async function runs($: EngineInterface, watch: Watch) {
  const state = await sure($, watch)
  if (state === null) return (await picture($)).trouble || 'bullswarm has nothing to show yet'
  const now = (await $.clock.now()) / 1000
  const running = state.runs.map(run => runWords(run, 110, now))
  const over = state.verdicts.map(
    one => `${one.ok ? '✓' : '✗'} ${one.shortId} ${one.poolLabel ?? '-'} · ${one.goal}${one.ok ? '' : ` · ${one.why}`}`,
  )
  return [...(running.length > 0 ? running : ['nothing is running']), ...over].join('\n')
}

async function open($: EngineInterface, watch: Watch, [name, step]: string[]) {
  const state = await sure($, watch)
  const run = chosen(state, name)
  if (run === undefined) return name === undefined ? 'nothing is running' : `no run ${name} is running · /bullswarm runs`
  if (step === undefined) return opened($, { page: 'run', run })
  return opened($, { page: 'step', run, step })
}

const chosen = (state: ModState | null, name: string | undefined) => {
  const known = [...(state?.runs ?? []), ...(state?.verdicts ?? [])]
  const found = name === undefined ? state?.runs[0] : known.find(run => run.shortId === name || run.runId === name)
  return found?.runId
}

async function label($: EngineInterface, watch: Watch, rest: string[]) {
  const said = await printed($, ['label', ...rest])
  if (rest.length > 1) await renew($, watch)
  return said
}

async function delegation($: EngineInterface, watch: Watch, word: string) {
  const said = await printed($, ['delegation', word])
  await renew($, watch)
  return said
}

async function strip($: EngineInterface, mode: string) {
  if (mode !== 'runs' && mode !== 'full' && mode !== 'off') return 'strip takes runs, full or off'
  await keepStrip($, mode)
  return `strip: ${mode}`
}
