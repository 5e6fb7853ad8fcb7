/** Keeps the mod's picture of bullswarm: a look at the state file each second, a call of bullswarm only when that is old. */
import type { EngineInterface } from 'claude-code'

import { bullswarm, parsedState, statePath, stepDetail, troubleOf } from './program'
import { keepDetail, keepNow, keepState, keepTrouble, known, picture } from './store'
import { since } from './words'

const LOOK_MS = 1000
// Kernels and the command line replace the file on every change; only the meters and the clock move without them.
const OLD_SEC = 120
// A broken bullswarm is not asked again every second.
const RETRY_SEC = 60
const DETAIL_SEC = 4
const IDLE_CLOCK_SEC = 30

export type Watch = {
  stamp: string
  askedAt: number
  asking: Promise<void> | null
  /** When the question that has no answer yet was put, in Unix milliseconds. */
  askingSince: number
  detailAt: number
}

export const newWatch = (): Watch => ({ stamp: '', askedAt: 0, asking: null, askingSince: Infinity, detailAt: 0 })

/** Takes what the file says if it is another than before; tells how old that is. */
async function look($: EngineInterface, watch: Watch, now: number) {
  const path = await statePath($)
  const stat = await $.fs.stat(path).catch(() => undefined)
  if (stat !== undefined && `${stat.mtimeMs}-${stat.size}` !== watch.stamp) {
    const found = parsedState(await $.fs.read(path))
    if (found !== undefined) {
      watch.stamp = `${stat.mtimeMs}-${stat.size}`
      await keepState($, found)
    }
  }
  const state = await known($)
  return state === null || stat === undefined ? Infinity : (since(state.at, now) ?? Infinity)
}

/** Has bullswarm write its state anew; `how` are further words, such as `--refresh`. One call at a time, for all who wait. */
export async function renew($: EngineInterface, watch: Watch, how: readonly string[] = []) {
  await watch.asking
  await asked($, watch, how)
}

/** The call that is under way, or else a new one. */
async function asked($: EngineInterface, watch: Watch, how: readonly string[] = []) {
  watch.asking ??= ask($, watch, how).finally(() => {
    watch.asking = null
    watch.askingSince = Infinity
  })
  await watch.asking
}

async function ask($: EngineInterface, watch: Watch, how: readonly string[]) {
  watch.askingSince = await $.clock.now()
  const said = await bullswarm($, ['mod-state', ...how], { timeoutMs: 60_000 })
  const found = said.code === 0 ? parsedState(said.out) : undefined
  if (found === undefined) await keepTrouble($, troubleOf(said))
  else await keepState($, found)
  watch.askedAt = (await $.clock.now()) / 1000
}

/** What is known of bullswarm, which is asked when that is nothing yet; null while it is broken. */
export async function sure($: EngineInterface, watch: Watch) {
  if ((await known($)) === null) await renew($, watch)
  return known($)
}

/** As `sure`, for who can't wait: `isLate` once bullswarm hasn't answered within so many milliseconds of being asked. */
export async function soon($: EngineInterface, watch: Watch, withinMs: number) {
  let isLate = false
  if ((await known($)) === null) {
    const left = Math.min(withinMs, watch.askingSince + withinMs - (await $.clock.now()))
    const answered = asked($, watch).catch(() => undefined)
    await Promise.race([answered, $.clock.sleep(Math.max(0, left)).then(() => (isLate = true))])
  }
  const state = await known($)
  return { state, isLate: isLate && state === null }
}

async function closeUp($: EngineInterface, watch: Watch, now: number) {
  const { view } = await picture($)
  if (view.page !== 'step' || now - watch.detailAt < DETAIL_SEC) return
  if (!(await $.ui.panes()).some(pane => pane.id === 'bullswarm')) return
  watch.detailAt = now
  await showDetail($, view.run, view.step)
}

/** Fetches what a step does now, for the pane. */
export async function showDetail($: EngineInterface, run: string, step: string) {
  await keepDetail($, await stepDetail($, run, step))
}

/** One look, whatever comes of it. */
export async function tick($: EngineInterface, watch: Watch) {
  const now = (await $.clock.now()) / 1000
  const age = await look($, watch, now)
  const isTime = age > OLD_SEC && now - watch.askedAt > RETRY_SEC && watch.asking === null
  if (isTime) void renew($, watch).catch(() => undefined)
  const shown = await picture($)
  // Without work in flight nothing on screen counts seconds.
  if ((shown.state?.runs.length ?? 0) > 0 || now - shown.now > IDLE_CLOCK_SEC) await keepNow($, now)
  await closeUp($, watch, now)
}

/** Looks now and then each second, as long as the session lasts. */
export async function follow($: EngineInterface, watch: Watch) {
  await tick($, watch).catch(() => undefined)
  let isBusy = false
  $.clock.every(LOOK_MS, () => {
    if (isBusy) return
    isBusy = true
    void tick($, watch)
      .catch(() => undefined)
      .finally(() => (isBusy = false))
  })
}
