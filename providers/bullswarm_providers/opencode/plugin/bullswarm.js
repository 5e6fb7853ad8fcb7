// Loaded into OpenCode workers only. OpenCode retries a refused model call in silence (5 times, and as long as the server
// asks, up to days); this reports each failing call on stderr as one line and ends a wait that can't be worth it.
import fs from "node:fs"

const PREFIX = "bullswarm-opencode "
// What a caller would wait for; a longer wait is a used-up quota, whatever it is called.
const LONGEST_WAIT_SEC = 120
// OpenCode's own waits are 2, 4, 8, 16 and 32 s. A run in which no call ever worked ends after the third failure (about
// 6 s); one that did work gets all of OpenCode's tries, since its work would be lost.
const FAILURES_BEFORE_ANY_SUCCESS = 3
const FAILURES_AFTER_A_SUCCESS = 6
const EXIT_TEMPORARY_FAILURE = 75
// Long enough for OpenCode to write the events of the step before.
const EXIT_DELAY_MS = 150
const LONGEST_MESSAGE = 300
const LONGEST_BODY = 65536
// Codes of a quota that is used up, in the bodies of the providers' refusals.
const USED_UP =
  /usage_limit_reached|insufficient_quota|usage_not_included|FreeUsageLimitError|GoUsageLimitError|billing_hard_limit_reached|quota exceeded/i

let succeeded = false
let failures = 0
let ending = false

function report(record) {
  try {
    fs.writeSync(2, PREFIX + JSON.stringify(record) + "\n")
  } catch {
    // A closed stderr must not break the worker.
  }
}

function isModelCall(input, init) {
  const method = init?.method ?? (typeof input === "object" && "method" in input ? input.method : "GET")
  if (String(method).toUpperCase() !== "POST") return false
  const body = init?.body
  return typeof body === "string" && /"(messages|input|contents|prompt)"\s*:/.test(body)
}

function retryAfterSec(headers) {
  const ms = Number.parseFloat(headers.get("retry-after-ms") ?? "")
  if (Number.isFinite(ms)) return Math.max(0, ms / 1000)
  const text = headers.get("retry-after")
  if (!text) return null
  const seconds = Number.parseFloat(text)
  if (Number.isFinite(seconds)) return Math.max(0, seconds)
  const date = Date.parse(text)
  return Number.isFinite(date) ? Math.max(0, (date - Date.now()) / 1000) : null
}

function messageOf(body) {
  try {
    const parsed = JSON.parse(body)
    const error = parsed.error ?? parsed
    const message = typeof error === "string" ? error : error.message
    if (typeof message === "string") return message.slice(0, LONGEST_MESSAGE)
  } catch {
    // Not JSON: the beginning of the text is the message.
  }
  return body.slice(0, LONGEST_MESSAGE)
}

function codeOf(body) {
  try {
    const error = JSON.parse(body).error
    const code = error?.code ?? error?.type
    return typeof code === "string" ? code.slice(0, 80) : null
  } catch {
    return null
  }
}

function fail(record, hopeless) {
  if (ending) return
  failures += 1
  const limit = succeeded ? FAILURES_AFTER_A_SUCCESS : FAILURES_BEFORE_ANY_SUCCESS
  ending = hopeless || failures >= limit
  report({ ...record, ended: ending })
  if (ending) setTimeout(() => process.exit(EXIT_TEMPORARY_FAILURE), EXIT_DELAY_MS)
}

// OpenCode itself gives up at once on these; ending the process would only take its own error event away.
const isRetried = status => status === 429 || status === 408 || status === 409 || status >= 500

async function failed(response) {
  let body = ""
  try {
    body = (await response.clone().text()).slice(0, LONGEST_BODY)
  } catch {
    // Without a body the status alone is reported.
  }
  const wait = retryAfterSec(response.headers)
  const record = { status: response.status, code: codeOf(body), retryAfterSec: wait, message: messageOf(body) }
  if (!isRetried(response.status)) return report({ ...record, ended: false })
  fail(record, (wait !== null && wait > LONGEST_WAIT_SEC) || (response.status === 429 && USED_UP.test(body)))
}

function wrapFetch() {
  const original = globalThis.fetch
  const wrapped = async function (input, init) {
    if (!isModelCall(input, init)) return original.call(this, input, init)
    let response
    try {
      response = await original.call(this, input, init)
    } catch (error) {
      // An abort is OpenCode's own doing, not the provider's.
      if (error?.name !== "AbortError") {
        const message = String(error?.message ?? error).slice(0, LONGEST_MESSAGE)
        fail({ status: null, code: error?.code ?? error?.name ?? null, retryAfterSec: null, message }, false)
      }
      throw error
    }
    if (response.status >= 400) await failed(response)
    else {
      succeeded = true
      failures = 0
    }
    return response
  }
  globalThis.fetch = Object.assign(wrapped, original)
}

// A permission that the person gave to one agent is stronger than OPENCODE_PERMISSION (measured), so that the lane's
// permissions are put into each agent as well.
function applyPermissions(config) {
  let wanted
  try {
    wanted = JSON.parse(process.env.OPENCODE_PERMISSION ?? "{}")
  } catch {
    return
  }
  const merged = given => ({ ...(typeof given === "string" ? { "*": given } : given), ...wanted })
  config.permission = merged(config.permission)
  for (const agent of Object.values(config.agent ?? {})) agent.permission = merged(agent.permission)
}

export const Bullswarm = async () => {
  wrapFetch()
  return {
    config: async config => {
      applyPermissions(config)
      if (process.env.BULLSWARM_OPENCODE_ISOLATED !== "1") return
      for (const server of Object.values(config.mcp ?? {})) server.enabled = false
    },
  }
}
