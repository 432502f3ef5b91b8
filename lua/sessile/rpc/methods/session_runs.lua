--- session_runs: session/…: policies, branches, answers, checkpoints.

local core = require "sessile.core"
local hooks = require "sessile.rpc.hooks"

local RUN = {
  window = "integer?", reserve = "integer?", keep_min = "integer?", timeout_ms = "Timeout?",
  isolation = "'none'|'worker'?",
}

return function(method, registry)
  local compact = registry.with(RUN, {
    policy = "Policy?", fallback = "Policy?", instructions = "string?",
    reason = "'turn'|'threshold'|'overflow'|'timer'|'event'|'manual'?",
  })
  local ASKS = { "model", "hook" }

  method("session/compact", "runs a policy on the context", compact, "Outcome", { asks = ASKS })

  method("session/plan", "the same, and nothing is written", compact, "Plan",
    { asks = ASKS, run = function(_, params, s)
      local given = {}
      for name in pairs(compact) do
        given[name] = params[name]
      end
      local plan, message, code, retry_ms, rule = s:plan(given)
      if plan then
        plan.text = (plan:diff())
      end
      return plan, message, code, retry_ms, rule
    end })

  local branch = registry.with(RUN, {
    entry = "Id", summary = "string|boolean?", policy = "Policy?", model = "string?",
    instructions = "string?", base = "Id?", on_conflict = "'fail'|'append'?",
  })
  method("session/branch", "moves the head to an entry; the other branch stays", branch,
    "Outcome", { asks = ASKS, run = function(_, params, s)
      return s:branch(params.entry, {
        summary = params.summary, policy = params.policy, model_name = params.model,
        instructions = params.instructions, base = params.base, on_conflict = params.on_conflict,
        window = params.window, reserve = params.reserve, keep_min = params.keep_min,
        timeout_ms = params.timeout_ms, isolation = params.isolation,
      })
    end })

  method("session/answer", "continues a parked run: with the model's text, with the reason why "
    .. "there is none, or by asking again", {
    text = "string?", pending_run = "Id?", failed = "string?", policy = "Policy?",
    fallback = "Policy?", timeout_ms = "Timeout?",
  }, "Outcome", { args = { "text" }, asks = ASKS })

  method("session/uncompact", "undoes a compaction: the newest in force, or this one", {
    entry = "Id?", dry_run = "boolean?",
  }, "Uncompacted", { args = { "entry" } })

  method("session/checkpoint", "makes a checkpoint: the head, and a state of the client", {
    state = "json?", name = "string?", metadata = "object?", keep = "integer?",
  }, "string")

  method("session/restore", "moves the head to a checkpoint: its id, or the newest of that name", {
    checkpoint = "string", force = "boolean?",
  }, "Restored", { run = function(_, params, s)
    local restored, message, code, retry_ms, rule =
      s:restore(params.checkpoint, { force = params.force })
    if not restored then
      return nil, message, code, retry_ms, rule
    end
    return { checkpoint = restored.checkpoint, head = restored.head,
      warnings = restored.warnings,
      state = restored.json and core.json(restored.json) or restored.state }
  end })

  method("session/delete_checkpoint", "deletes a checkpoint", { checkpoint = "string" }, "boolean",
    { args = { "checkpoint" } })

  method("run/message", "a message of the state of a hook that waits, by its position from 1", {
    run = "json", index = "integer", previous = "boolean?",
  }, "Read", { of = "server", run = function(_, params, server)
    local request = server.by_id[params.run.json]
    if not request then
      return nil, "no request of that id runs", "ENOTFOUND"
    end
    return hooks.message(request, params.index, params.previous)
  end })
end
