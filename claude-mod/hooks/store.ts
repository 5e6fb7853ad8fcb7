/** What the drawings are made from. The host keeps it for the session, and whoever reads it while drawing is drawn again. */
import { atom, read, update } from 'claude-code'
import type { EngineInterface } from 'claude-code'

import type { ModState, StepDetail, StripMode, View } from '../types'

const state = atom({ plugin: 'bullswarm', key: 'state' } as const, null)
const trouble = atom({ plugin: 'bullswarm', key: 'trouble' } as const, '')
const now = atom({ plugin: 'bullswarm', key: 'now' } as const, 0)
const strip = atom({ plugin: 'bullswarm', key: 'strip' } as const, 'full')
const view = atom({ plugin: 'bullswarm', key: 'view' } as const, { page: 'home' })
const detail = atom({ plugin: 'bullswarm', key: 'detail' } as const, null)

export type Picture = {
  state: ModState | null
  trouble: string
  now: number
  strip: StripMode
  view: View
  detail: StepDetail | null
}

/** Everything that a drawing may need. */
export async function picture($: EngineInterface): Promise<Picture> {
  return {
    state: await read($, state),
    trouble: await read($, trouble),
    now: await read($, now),
    strip: await read($, strip),
    view: await read($, view),
    detail: await read($, detail),
  }
}

/** What bullswarm last told of itself; null before that, and while it is broken. */
export async function known($: EngineInterface) {
  return read($, state)
}

export async function keepState($: EngineInterface, found: ModState) {
  await update($, state, () => found)
  await update($, trouble, () => '')
}

/** Forgets the state, which nothing vouches for any more, and says why. */
export async function keepTrouble($: EngineInterface, why: string) {
  await update($, state, () => null)
  await update($, trouble, () => why)
}

export async function keepNow($: EngineInterface, seconds: number) {
  await update($, now, () => seconds)
}

export async function keepStrip($: EngineInterface, mode: StripMode) {
  await update($, strip, () => mode)
}

/** Goes to another page of the pane, with nothing known yet of the step that it may show. */
export async function keepView($: EngineInterface, page: View) {
  await update($, detail, () => null)
  await update($, view, () => page)
}

export async function keepDetail($: EngineInterface, found: StepDetail | null) {
  await update($, detail, () => found)
}
