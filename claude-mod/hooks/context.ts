/** What the model is told of pools and runs, and when: only after a pool changed bucket or a run started or ended. Pure. */
import type { ModState } from '../types'
import { shownPools } from './strip'
import { clipped, oneLine, surplusText } from './words'

/** How the block begins, in the shell hooks too. */
export const OPENING = 'bullswarm can hand a bounded task to another account'
const MOST_POOLS = 8
const MOST_RUNS = 5

/** What has to change before the model is told anew. */
export const signature = (state: ModState) =>
  JSON.stringify([
    shownPools(state).map(pool => [pool.pool, pool.poolLabel, pool.bucket]),
    state.runs.map(run => [run.runId, run.state]),
  ])

/** The block for the model; empty when there is nothing that it could use. */
export const block = (state: ModState) => {
  const pools = shownPools(state).sort((one, other) => (other.surplus ?? 0) - (one.surplus ?? 0)).slice(0, MOST_POOLS)
  const runs = state.runs.slice(0, MOST_RUNS)
  if (pools.length === 0 && runs.length === 0) return ''
  const lines = [`${OPENING}: bullswarm run --lane analyze|build|chore "the task"`]
  if (pools.length > 0) lines.push('pools by surplus:')
  for (const pool of pools) {
    const numbers = pool.metered ? `surplus ${surplusText(pool.surplus)}` : 'no meter'
    lines.push(`- ${clipped(oneLine(pool.poolLabel), 40)}: ${numbers}, ${pool.bucket}`)
  }
  if (runs.length > 0) lines.push('running:')
  for (const run of runs) {
    const where = run.poolLabel === null ? '' : ` on ${oneLine(run.poolLabel)}`
    lines.push(`- ${run.shortId}${where}: ${run.state}, ${run.done} of ${run.all} done`)
  }
  return lines.join('\n')
}
