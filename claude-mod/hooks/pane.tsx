/** The pane: everything, one run with its steps, one step from close by, or the pools with every window. Read-only. */
import type { Elements } from 'claude-code'

import type { ModState, Pool, Run, Step, StepDetail, View } from '../types'
import { backIn, bar, poolRow, runWords, shownPools } from './strip'
import { clipped, elapsed, fitted, oneLine, since, span } from './words'

type Table = Pick<Elements['terminal'], 'Box' | 'Text' | 'Button'>

export type PaneGiven = {
  state: ModState | null
  trouble: string
  view: View
  detail: StepDetail | null
  columns: number
  now: number
  go: (view: View) => Promise<unknown>
  close: () => Promise<unknown>
}

const MARKS: Record<string, string> = {
  succeeded: '✓', passed: '✓', failed: '✗', blocked: '✗', cancelled: '✗', running: '▶', waiting: '⧖', pending: '·',
}
const COLORS: Record<string, 'success' | 'error' | 'warning'> = {
  succeeded: 'success', failed: 'error', blocked: 'error', cancelled: 'error', running: 'warning', waiting: 'warning',
}

/** The whole pane. */
export const paneBody = (table: Table, given: PaneGiven) => {
  const { Box, Text } = table
  if (given.state === null) {
    return <Text dimColor>{given.trouble || 'bullswarm has nothing to show yet'}</Text>
  }
  return (
    <Box flexDirection="column">
      {head(table, given)}
      {page(table, given, given.state)}
    </Box>
  )
}

const head = (table: Table, given: PaneGiven) => {
  const { Box, Button } = table
  const { view, go } = given
  const up: View = view.page === 'step' ? { page: 'run', run: view.run } : { page: 'home' }
  return (
    <Box gap={2}>
      {view.page !== 'home' && <Button key="back" hotkey="b" plain label="back" onPress={() => go(up)} />}
      {view.page !== 'pools' && <Button key="pools" hotkey="p" plain label="pools" onPress={() => go({ page: 'pools' })} />}
      <Button key="close" hotkey="q" plain role="dismiss" label="close" onPress={() => given.close()} />
    </Box>
  )
}

const page = (table: Table, given: PaneGiven, state: ModState) => {
  const { view } = given
  if (view.page === 'home') return home(table, given, state)
  if (view.page === 'pools') return pools(table, given, state)
  const run = state.runs.find(one => one.runId === view.run)
  if (view.page === 'step') return step(table, given, run, view.step)
  return run === undefined ? ended(table, state, view.run) : steps(table, given, run)
}

const home = (table: Table, given: PaneGiven, state: ModState) => {
  const { Box, Button, Text } = table
  return (
    <Box flexDirection="column">
      <Text bold>running</Text>
      {state.runs.length === 0 && <Text dimColor>nothing is running</Text>}
      {state.runs.map((run, place) => (
        <Button
          key={`run-${run.runId}`}
          plain
          label={runWords(run, given.columns, given.now)}
          onPress={() => given.go({ page: 'run', run: run.runId })}
          {...(place < 9 ? { hotkey: `${place + 1}` } : {})}
        />
      ))}
      <Text bold>pools</Text>
      {shownPools(state).map(pool => poolRow(table, pool, given.columns, given.now, 14))}
      {state.verdicts.length > 0 && <Text bold>newest verdicts</Text>}
      {state.verdicts.map(verdict => (
        <Text wrap="truncate-end">
          <Text color={verdict.ok ? 'success' : 'error'}>{verdict.ok ? '✓' : '✗'}</Text>
          {` ${verdict.shortId} ${oneLine(verdict.poolLabel ?? '')} ${oneLine(verdict.goal)}`}
          <Text dimColor>{verdict.ok ? '' : ` · ${oneLine(verdict.why)}`}</Text>
        </Text>
      ))}
    </Box>
  )
}

const pools = (table: Table, given: PaneGiven, state: ModState) => {
  const { Box, Text } = table
  return (
    <Box flexDirection="column">
      {state.pools.map(pool => (
        <Box key={`all-${pool.pool}`} flexDirection="column">
          <Text wrap="truncate-end">
            <Text bold>{oneLine(pool.poolLabel)}</Text>
            <Text dimColor>{` ${poolFacts(pool, given.now)}`}</Text>
          </Text>
          {pool.windows.map(window => (
            <Text wrap="truncate-end">
              {'  '}
              {bar(table, fitted(window.scope ? `${window.kind} ${window.scope}` : window.kind, 12), window, 10)}
              <Text dimColor>{resetText(window.resetsAt, given.now)}</Text>
            </Text>
          ))}
        </Box>
      ))}
    </Box>
  )
}

const poolFacts = (pool: Pool, now: number) =>
  [
    pool.poolLabel === pool.pool ? '' : pool.pool,
    pool.state,
    backIn(pool, now),
    pool.surplus === null ? (pool.metered ? 'not read yet' : 'no meter') : `surplus ${Math.round(pool.surplus)}`,
    pool.inflight > 0 ? `${pool.inflight} in flight` : '',
    oneLine(pool.why ?? ''),
  ]
    .filter(Boolean)
    .join(' · ')

const resetText = (resetsAt: string | null, now: number) => {
  const gone = since(resetsAt, now)
  return gone === undefined ? 'reset unknown' : gone < 0 ? `resets in ${span(-gone)}` : 'was reset'
}

const steps = (table: Table, given: PaneGiven, run: Run) => {
  const { Box, Button, Text } = table
  return (
    <Box flexDirection="column">
      <Text bold wrap="truncate-end">{`${run.shortId} ${run.state} · ${run.done} of ${run.all} done`}</Text>
      <Text wrap="wrap" maxLines={2}>{oneLine(run.goal)}</Text>
      <Text dimColor wrap="truncate-middle">{run.cwd}</Text>
      {run.waitingFor.length > 0 && <Text color="warning">{`waits for you at ${run.waitingFor.join(', ')}`}</Text>}
      {run.steps.map((one, place) => (
        <Button
          key={`step-${one.id}`}
          plain
          label={clipped(stepWords(one, given.now), given.columns - 4)}
          onPress={() => given.go({ page: 'step', run: run.runId, step: one.id })}
          {...(place < 9 ? { hotkey: `${place + 1}` } : {})}
        />
      ))}
      {run.omittedSteps > 0 && <Text dimColor>{`and ${run.omittedSteps} more`}</Text>}
    </Box>
  )
}

const stepWords = (one: Step, now: number) => {
  const time = one.wallSec !== null ? span(one.wallSec) : one.status === 'running' ? elapsed(one.startedAt, one.expectedSec, now) : ''
  const tries = one.attempts > 1 ? `${one.attempts} tries` : ''
  const facts = [one.status, one.poolLabel ?? '', time, tries, one.failureKind ?? ''].filter(Boolean).map(oneLine)
  return `${MARKS[one.status] ?? '·'} ${one.id} · ${facts.join(' · ')}`
}

const step = (table: Table, given: PaneGiven, run: Run | undefined, id: string) => {
  const { Box, Text } = table
  const { detail } = given
  const known = run?.steps.find(one => one.id === id)
  if (detail === null || detail.step !== id) return <Text dimColor>{`looking at ${id} …`}</Text>
  const status = known?.status ?? detail.status
  return (
    <Box flexDirection="column">
      <Text wrap="truncate-end">
        <Text color={COLORS[status] ?? 'warning'}>{MARKS[status] ?? '·'}</Text>
        <Text bold>{` ${detail.shortId} ${id}`}</Text>
        <Text>{` ${[status, detail.poolLabel, detail.model].filter(Boolean).join(' · ')}`}</Text>
      </Text>
      {known !== undefined && <Text dimColor>{elapsed(known.startedAt, known.expectedSec, given.now)}</Text>}
      {detail.activity !== null && <Text wrap="wrap">{activityWords(detail.activity)}</Text>}
      {detail.why !== null && <Text wrap="wrap">{oneLine(detail.why)}</Text>}
      {detail.outFile !== null && <Text dimColor wrap="truncate-middle">{detail.outFile}</Text>}
      <Text bold>task</Text>
      <Text wrap="wrap" maxLines={6}>{oneLine(detail.task)}</Text>
      <Text bold>{detail.activity === null ? 'output' : 'so far'}</Text>
      {detail.excerpt === '' && <Text dimColor>nothing yet</Text>}
      {detail.excerpt.split('\n').map(line => (
        <Text wrap="wrap">{oneLine(line) || ' '}</Text>
      ))}
    </Box>
  )
}

const activityWords = (activity: NonNullable<StepDetail['activity']>) => {
  if (activity.checking) return 'its work is being checked'
  const count = `${activity.commands} command${activity.commands === 1 ? '' : 's'}`
  const last = activity.lastCommand === null ? '' : ` · ${activity.inFlight ? 'now' : 'last'}: ${oneLine(activity.lastCommand)}`
  const quiet = activity.quietSec >= 60 ? ` · quiet for ${span(activity.quietSec)}` : ''
  return `${count}${last}${quiet}`
}

const ended = (table: Table, state: ModState, id: string) => {
  const { Box, Text } = table
  const verdict = state.verdicts.find(one => one.runId === id)
  if (verdict === undefined) return <Text dimColor>this run is over</Text>
  return (
    <Box flexDirection="column">
      <Text color={verdict.ok ? 'success' : 'error'}>{`${verdict.shortId} ${verdict.ok ? 'is ok' : 'FAILED'}`}</Text>
      <Text wrap="wrap">{oneLine(verdict.goal)}</Text>
      <Text wrap="wrap">{oneLine(verdict.why)}</Text>
      {verdict.outFile !== null && <Text dimColor wrap="truncate-middle">{verdict.outFile}</Text>}
    </Box>
  )
}
