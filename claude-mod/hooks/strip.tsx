/** The rows above the prompt: the pools with their bars, then a row for each running workflow or task. */
import type { Elements } from 'claude-code'

import type { ModState, Pool, PoolWindow, Run, StripMode } from '../types'
import { barCells, cells, clipped, elapsed, fitted, oneLine, span, since, surplusText, useColor } from './words'

type Table = Pick<Elements['terminal'], 'Box' | 'Text' | 'Button'>

const WIDE = 76
const MOST_POOLS = 8
const MOST_RUNS = 9
// The cells that Claude Code puts before a row with a digit, and those between what it says.
const HOTKEY = 3
const SEPARATORS = 4
const LEAST_GOAL = 6
const MARKS: Record<string, string> = { waiting: '⧖', paused: '⏸', 'kernel-gone': '✗', stopping: '■' }

/** The pools that a person would look for: not those that are turned off, not the embedded stand-in. */
export const shownPools = (state: ModState) =>
  state.pools.filter(pool => pool.enabled && !pool.lastResort && (pool.state !== 'unavailable' || pool.inflight > 0))

/** Whether there is anything to say in this mode. */
export const hasRows = (state: ModState, mode: StripMode) =>
  mode !== 'off' && (state.runs.length > 0 || (mode === 'full' && shownPools(state).length > 0))

/** A bar with its number, as text elements. */
export const bar = (table: Table, name: string, window: PoolWindow | null, width: number) => {
  const { Text } = table
  if (window === null || window.usedPct === null) {
    return <Text dimColor>{`${name} ${fitted('not read', width + 5)}`}</Text>
  }
  const drawn = barCells(window.usedPct, window.elapsedPct, width)
  const color = useColor(window.usedPct, window.elapsedPct)
  return (
    <Text>
      <Text dimColor>{name} </Text>
      <Text color={color}>{drawn.before}</Text>
      <Text bold>{drawn.mark}</Text>
      <Text color={color}>{drawn.after}</Text>
      <Text>{` ${Math.round(window.usedPct)}%`.padEnd(5)}</Text>
    </Text>
  )
}

const CLOSED_FOR_A_TIME: Record<string, string> = { 'burst-gated': 'full', quarantined: 'quarantined' }

/** `back in 3h`, of a pool that gets nothing until a known time. */
export const backIn = (pool: Pool, now: number) => {
  const left = pool.state in CLOSED_FOR_A_TIME ? since(pool.backAt, now) : undefined
  return left === undefined ? '' : `back in ${span(-left)}`
}

const poolState = (pool: Pool, now: number) => {
  const closed = CLOSED_FOR_A_TIME[pool.state]
  if (closed !== undefined) return [closed, backIn(pool, now)].filter(Boolean).join(', ')
  if (pool.state === 'expiring-soon') return 'expiring'
  if (pool.state === 'billing-gated') return 'billing?'
  return ''
}

/** One pool in one row. */
export const poolRow = (table: Table, pool: Pool, columns: number, now: number, nameWidth: number) => {
  const { Box, Text } = table
  const isWide = columns >= WIDE
  const width = isWide ? 10 : 5
  const load = pool.inflight > 0 ? ` ${pool.inflight} in flight` : ''
  const short = pool.inflight > 0 ? ` ×${pool.inflight}` : ''
  const said = isWide ? [load, poolState(pool, now)].filter(Boolean).join(' ') : short
  return (
    <Box key={`pool-${pool.pool}`}>
      <Text wrap="truncate-end">
        <Text bold>{fitted(oneLine(pool.poolLabel), nameWidth)}</Text>
        {'  '}
        {pool.metered ? bar(table, '5h', pool.fiveHour, width) : <Text dimColor>no meter</Text>}
        {pool.metered && bar(table, isWide ? 'weekly' : 'wk', pool.weekly, width)}
        <Text dimColor>{isWide ? 'surplus ' : ''}</Text>
        <Text>{surplusText(pool.surplus)}</Text>
        <Text color="warning">{said}</Text>
      </Text>
    </Box>
  )
}

/** What a row says of a run: its progress, its step, its pool, its time. A narrow one leaves out what can be guessed. */
export const runWords = (run: Run, columns: number, now: number) => {
  const isWide = columns >= WIDE
  const time = elapsed(run.startedAt ?? run.createdAt, run.expectedSec, now, isWide ? ' of ' : '/')
  const where = run.poolLabel === null ? '' : `on ${clipped(oneLine(run.poolLabel), isWide ? 30 : 12)}`
  const single = isWide ? (run.lane ?? '') : ''
  const at = run.kind === 'run' ? single : `${run.done}/${run.all} ${clipped(run.step ?? '', isWide ? 30 : 12)}`
  const waits = run.waitingFor.length > 0 ? `waits for you at ${run.waitingFor.join(', ')}` : ''
  const state = ['running', 'waiting'].includes(run.state) ? '' : run.state
  const facts = [at, where, waits || state, waits ? '' : time].filter(Boolean).map(oneLine).join(' · ')
  const head = `${MARKS[run.state] ?? '▶'} ${run.shortId}`
  const room = columns - HOTKEY - cells(head) - cells(facts) - SEPARATORS
  return clipped(`${head} ${clipped(oneLine(run.goal), Math.max(LEAST_GOAL, room))} · ${facts}`, columns - HOTKEY)
}

/** The whole strip; the caller has seen that there is something to say. */
export const stripRows = (
  table: Table,
  state: ModState,
  given: { mode: StripMode; columns: number; now: number; open: (run: Run) => Promise<unknown> },
) => {
  const { Box, Button, Text } = table
  const pools = given.mode === 'full' ? shownPools(state).slice(0, MOST_POOLS) : []
  const nameWidth = Math.min(given.columns >= WIDE ? 22 : 12, Math.max(4, ...pools.map(pool => cells(oneLine(pool.poolLabel)))))
  const more = state.runs.length - MOST_RUNS
  return (
    <Box flexDirection="column">
      {pools.map(pool => poolRow(table, pool, given.columns, given.now, nameWidth))}
      {state.runs.slice(0, MOST_RUNS).map((run, place) => (
        <Button
          key={`run-${run.runId}`}
          hotkey={`${place + 1}`}
          plain
          label={runWords(run, given.columns, given.now)}
          onPress={() => given.open(run)}
        />
      ))}
      {more > 0 && <Text dimColor>{`and ${more} more · /bullswarm runs`}</Text>}
    </Box>
  )
}
