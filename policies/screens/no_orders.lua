-- no_orders: refuses texts that order a model about.
--
-- Use it   for memories and states: what a tool, a ticket or a web page says should not become a
--          standing order that the agent reads in every later session.
-- Does     orders to forget the rules, to take another role, to show the instructions or to hide
--          something are refused from everybody but the host. Rules for the future ("from now on
--          …", "whenever … send …") are refused unless the user or the host states them.
-- Cost     some µs for each text; the function runs only when a pattern matched.
-- Options  action: "flag" writes the text and marks it. exempt: further sources that may order.
-- Never    finds all orders: a translation, a code, or innocent words pass. English and German are
--          known. `sessile screen test no_orders` prints what it finds of the attacks that ship.

-- Words between two that belong together.
local gap = [[\W+(?:[\w'’]+\W+){0,5}?]]

-- luacheck: push no max line length
local rules = [[(?:instructions?|rules?|prompts?|guidelines?|directives?|policy|policies|constraints?|orders)]]
local before = [[(?:previous|prior|above|earlier|preceding|foregoing|all|any|your|the|these|existing|system)]]
-- luacheck: pop

return {
  name = "no_orders",
  version = 1,
  about = "Refuse texts that order a model about.",
  on = { "memory", "state" },
  options = {
    action = { type = "string", default = "refuse", values = { "refuse", "flag" },
      about = "what is done with an order" },
    exempt = { type = "list", default = {},
      about = "sources besides the host that may give orders: user, agent, tool, system" },
  },

  -- luacheck: push no max line length
  patterns = {
    -- Orders that nobody's memory needs.
    override = [[\b(?:ignore|disregard|forget|override|bypass|skip|drop)]] .. gap
      .. before .. gap:gsub("5", "3") .. rules .. [[\b]],
    not_follow = [[\b(?:do not|don't|never|stop|no longer)\s+(?:follow|obey|apply|respect)\w*]]
      .. gap .. rules .. [[\b]],
    new_rules = [[\b(?:your|these are(?: the| your)?|here are(?: the| your)?)\s+(?:new|real|actual|true)\s+]]
      .. rules .. [[\b]],
    role = [[\byou(?:'re| are)\s+(?:now|no longer)\b|\b(?:act|behave|pretend|respond)\s+(?:as if|as though|as an? (?:unrestricted|unfiltered|admin\w*|root|developer)|to be)\b|\b(?:developer|debug|god|jailbreak|dan)\s+mode\b]],
    reveal = [[\b(?:reveal|show|print|repeat|output|leak|disclose|dump)]] .. gap
      .. [[(?:system\s+(?:prompt|message)|hidden\s+(?:prompt|instructions)|initial\s+instructions|your\s+instructions)\b]],
    conceal = [[\b(?:do not|don't|never)\s+(?:tell|inform|mention|notify|alert|warn|show|reveal)]]
      .. gap .. [[(?:user|anyone|anybody|human|person|owner|admin\w*)\b]],
    pretend = [[(?:(?<![\w \t"'.,(/-])|(?<=# ))(?:im_start|system|assistant|inst|sys)(?:\|?>|\]|:)|<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\b(?:system|admin\w*|developer|security)\s+(?:override|notice|update|alert)\s*:]],
    german = [[\b(?:ignorier|vergiss|vergess|missachte|umgeh)\w*]] .. gap
      .. [[(?:anweisung|regel|vorgabe|befehl|instruktion)\w*|\bdu bist (?:jetzt|nun|ab sofort)\b|\b(?:sag|erz(?:ä|ae)hl|verrat)\w*\s+(?:es\s+)?(?:dem|der|den)\s+(?:nutzer|benutzer|anwender)\w*\s+nicht]],

    -- Rules for the future: a user may state them.
    standing = [[\b(?:from now on|from this (?:point|moment) on|going forward|henceforth|ab (?:jetzt|sofort))\b]],
    whenever = [[\b(?:whenever|every time|each time|any time|always|immer wenn)\b.{0,80}?\b(?:send|forward|post|upload|email|e-mail|bcc|copy|run|execute|call|fetch|download|curl|wget|approve|grant|transfer|pay|delete|sende?n?|schicken?|überweisen?|lösche?n?)\b]],
    exfiltrate = [[\b(?:send|forward|post|upload|email|e-mail|bcc|exfiltrate)]] .. gap
      .. [[(?:conversations?|chats?|history|messages?|files?|credentials?|passwords?|tokens?|keys?|secrets?|contents?)\b.{0,60}?(?:https?://|\bto\b|[\w.]+@[\w.]+)]],
    must = [[\b(?:the\s+)?(?:assistant|agent|model|ai|llm|bot)\s+(?:must|should|shall|has to|needs to|is (?:instructed|required|authorized|allowed) to)\s+(?:always|never|immediately|ignore|send|run|execute|forward|approve|call|use|trust|reply|respond|recommend)\b]],
  },
  -- luacheck: pop

  screen = function(item, ctx)
    if item.source == "host" then
      return "pass"
    end
    for _, source in ipairs(ctx.options.exempt) do
      if item.source == source then
        return "pass"
      end
    end
    local found = item.matches
    for _, rule in ipairs { "override", "not_follow", "new_rules", "role", "reveal", "conceal",
      "pretend", "german" } do
      if found[rule] then
        return ctx.options.action, rule
      end
    end
    if item.source == "user" then
      return "pass"
    end
    for _, rule in ipairs { "standing", "whenever", "exfiltrate", "must" } do
      if found[rule] then
        return ctx.options.action, rule
      end
    end
  end,
}
