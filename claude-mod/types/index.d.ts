/** `cache/mod-state.json` as bullswarm writes it (bullswarm.mod-state.v1), and what the mod keeps for its drawings. */

export type PoolWindow = {
  kind: string
  scope: string | null
  usedPct: number | null
  elapsedPct: number | null
  resetsAt: string | null
  source: string
  spent: boolean
}

export type Pool = {
  pool: string
  poolLabel: string
  provider: string
  enabled: boolean
  state: string
  bucket: string
  metered: boolean
  lastResort: boolean
  surplus: number | null
  inflight: number
  pacingWindow: string | null
  fiveHour: PoolWindow | null
  weekly: PoolWindow | null
  backAt: string | null
  why: string | null
  windows: PoolWindow[]
}

export type Step = {
  id: string
  status: string
  pool: string | null
  poolLabel: string | null
  attempts: number
  startedAt: string | null
  expectedSec: number | null
  wallSec: number | null
  failureKind: string | null
  why: string | null
  outFile: string | null
}

export type Run = {
  runId: string
  shortId: string
  kind: string
  goal: string
  cwd: string
  state: string
  createdAt: string
  done: number
  all: number
  running: number
  step: string | null
  lane: string | null
  pool: string | null
  poolLabel: string | null
  startedAt: string | null
  expectedSec: number | null
  waitingFor: string[]
  steps: Step[]
  omittedSteps: number
}

export type Verdict = {
  runId: string
  shortId: string
  kind: string
  goal: string
  outcome: string
  ok: boolean
  why: string
  failureKind: string | null
  pool: string | null
  poolLabel: string | null
  outFile: string | null
  finishedAt: string | null
}

export type ModState = {
  schemaVersion: string
  version: string
  at: string
  delegation: boolean
  pools: Pool[]
  runs: Run[]
  verdicts: Verdict[]
}

/** One step from close by, as `bullswarm mod-state --run RUN --step STEP` prints it (bullswarm.mod-step.v1). */
export type StepDetail = {
  runId: string
  shortId: string
  step: string
  status: string
  poolLabel: string | null
  model: string | null
  attempts: number
  startedAt: string | null
  activity: {
    commands: number
    lastCommand: string | null
    inFlight: boolean
    checking: boolean
    quietSec: number
  } | null
  why: string | null
  outFile: string | null
  task: string
  excerpt: string
}

export type StripMode = 'runs' | 'full' | 'off'

/** What the pane shows: everything, one run with its steps, one step, or the pools with every window. */
export type View =
  | { page: 'home' }
  | { page: 'pools' }
  | { page: 'run'; run: string }
  | { page: 'step'; run: string; step: string }

declare module 'claude-code' {
  interface PluginState {
    bullswarm: {
      state: ModState | null
      trouble: string
      now: number
      strip: StripMode
      view: View
      detail: StepDetail | null
    }
  }
}
