/** The verdict of a `bullswarm run` in what a tool left behind, and the one line about it. Pure; the words may be a worker's. */
import { clipped, oneLine } from './words'

export type Found = {
  run: string
  ok: boolean | null
  pool: string
  why: string
  failureKind: string
  backAt: string
  outFile: string
}

const PLACES = ['structuredContent', 'structured_content', 'stdout', 'content', 'output', 'text', 'result']
const DEEPEST = 6
const RUN_COMMAND = /(^|[\s;&|(/])bullswarm\s+(run|(runs|workflow)\s+(wait|result))(\s|$)/

/** Whether a shell command line runs or awaits work of ours. */
export const isRunCommand = (command: unknown) => typeof command === 'string' && RUN_COMMAND.test(command)

type Fields = Record<string, unknown>

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

const text = (value: unknown, most: number) =>
  typeof value === 'string' ? clipped(oneLine(value).replace(/"/g, "'"), most) : ''

const fromFields = (fields: Fields): Found => {
  const pick = isFields(fields['pick']) ? fields['pick'] : fields
  return {
    run: text(fields['shortId'] ?? fields['runId'], 60) || 'last',
    ok: typeof fields['ok'] === 'boolean' ? fields['ok'] : null,
    pool: text(pick['poolLabel'] ?? pick['pool'], 60),
    why: text(fields['why'], 300),
    failureKind: text(fields['failureKind'], 60),
    backAt: text(fields['backAt'], 60),
    outFile: text(fields['outFile'], 400),
  }
}

/** Finds a verdict in a tool's result, in whichever form it came. */
export const findVerdict = (response: unknown, depth = 0): Found | undefined => {
  if (depth > DEEPEST) return undefined
  if (typeof response === 'string') return inText(response, depth)
  if (Array.isArray(response)) return first(response.slice(0, 20).map(item => () => findVerdict(item, depth + 1)))
  if (!isFields(response)) return undefined
  if (('runId' in response || 'shortId' in response) && 'ok' in response) return fromFields(response)
  return first(PLACES.filter(place => place in response).map(place => () => findVerdict(response[place], depth + 1)))
}

const first = (looks: (() => Found | undefined)[]) => {
  for (const look of looks) {
    const found = look()
    if (found !== undefined) return found
  }
  return undefined
}

const inText = (given: string, depth: number) => {
  const start = given.indexOf('{')
  const end = given.lastIndexOf('}')
  if (start >= 0 && end > start) {
    try {
      const found = findVerdict(JSON.parse(given.slice(start, end + 1)), depth + 1)
      if (found !== undefined) return found
    } catch {
      return inLines(given)
    }
  }
  return inLines(given)
}

/** Reads the lines of `bullswarm run` without `--json`. */
const inLines = (given: string): Found | undefined => {
  const head = /^(OK|FAIL|RUNNING|STOPPING|KERNEL-GONE) \[([^\]\n]+)\] ([^\n]*)$/m.exec(given)
  const run = /^run: (\w+) \(bullswarm runs show \w+\)$/m.exec(given)
  if (head === null || run === null) return undefined
  const [, word = '', pool = '-', why = ''] = head
  const failure = word === 'FAIL' ? /^(.*) \(([a-z-]+)\)$/.exec(why) : null
  return {
    run: run[1] ?? 'last',
    ok: word === 'OK' ? true : word === 'FAIL' ? false : null,
    pool: pool === '-' ? '' : text(pool, 60),
    why: text(failure?.[1] ?? why, 300),
    failureKind: failure?.[2] ?? '',
    backAt: '',
    outFile: text(/^output: (.+) \(\d+ bytes\)$/m.exec(given)?.[1], 400),
  }
}

/** The one line: what came of the task, where to look, and what to do next. */
export const verdictLine = (found: Found) => {
  const pool = found.pool ? ` on ${found.pool}` : ''
  if (found.ok === null) {
    return `bullswarm: run ${found.run}${pool} is not finished · wait on: bullswarm runs wait ${found.run}`
  }
  const why = found.why ? ` ("${found.why}")` : ''
  const parts = [
    `bullswarm: run ${found.run}${pool} ${found.ok ? 'is ok' : 'FAILED'}${why}`,
    found.failureKind && `kind: ${found.failureKind}`,
    found.backAt && `back at ${found.backAt}`,
    found.outFile && `output: ${found.outFile}`,
    found.ok ? 'read it and check its claims' : `see bullswarm runs show ${found.run}; don't just repeat it`,
  ]
  return parts.filter(Boolean).join(' · ')
}
