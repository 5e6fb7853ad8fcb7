// bullswarm for OpenCode: asks `bullswarm-hook` at the same moments as Claude Code and Codex do. Silent whenever in doubt.
import { spawn } from "node:child_process"

const HOOK = "bullswarm-hook"
const QUICK_MS = 5_000
const DELEGATION_MS = 570_000
const SUBAGENT_TOOL = "task"
const isOurs = (tool, args) =>
  tool.startsWith("bullswarm_") || (tool === "bash" && String(args?.command ?? "").includes("bullswarm"))

function ask(event, payload, directory, limitMs) {
  return new Promise((resolve) => {
    let text = ""
    let child
    try {
      child = spawn(HOOK, ["opencode", event], { cwd: directory, stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return resolve(undefined)
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs)
    const end = () => {
      clearTimeout(timer)
      try {
        resolve(text ? JSON.parse(text).hookSpecificOutput : undefined)
      } catch {
        resolve(undefined)
      }
    }
    child.on("error", end)
    child.on("close", end)
    child.stdout.on("data", (data) => (text += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ hook_event_name: event, cwd: directory, ...payload }))
  })
}

export const Bullswarm = async ({ directory }) => {
  const depth = (process.env.BULLSWARM_DEPTH ?? "").trim()
  if (depth !== "" && depth !== "0") return {}
  const greeted = new Set()
  return {
    "chat.message": async (input, output) => {
      if (greeted.has(input.sessionID)) return
      greeted.add(input.sessionID)
      const said = await ask("SessionStart", { session_id: input.sessionID }, directory, QUICK_MS)
      const last = output.parts.at(-1)
      if (said?.additionalContext && last)
        output.parts.push({ ...last, id: `${last.id}b`, type: "text", text: said.additionalContext, synthetic: true })
    },
    "tool.execute.before": async (input, output) => {
      if (input.tool !== SUBAGENT_TOOL && !isOurs(input.tool, output.args)) return
      const limit = input.tool === SUBAGENT_TOOL ? DELEGATION_MS : QUICK_MS
      const payload = { session_id: input.sessionID, tool_name: input.tool, tool_input: output.args }
      const said = await ask("PreToolUse", payload, directory, limit)
      if (said?.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
      if (said?.updatedInput) Object.assign(output.args, said.updatedInput)
    },
    "tool.execute.after": async (input, output) => {
      if (!isOurs(input.tool, input.args)) return
      const payload = {
        session_id: input.sessionID,
        tool_name: input.tool,
        tool_input: input.args,
        // The output of an MCP tool is the server's own result here, that of a built-in one a text.
        tool_response: output.output ?? output.content,
      }
      const said = await ask("PostToolUse", payload, directory, QUICK_MS)
      if (!said?.additionalContext) return
      if (typeof output.output === "string") output.output += `\n${said.additionalContext}`
      else if (Array.isArray(output.content)) output.content.push({ type: "text", text: said.additionalContext })
    },
  }
}
