// langgraph_messages.mjs: LangChain's messages, as they are stored, as messages of a session.

const ROLES = {
  human: "user", HumanMessage: "user", HumanMessageChunk: "user", user: "user",
  ai: "assistant", AIMessage: "assistant", AIMessageChunk: "assistant", assistant: "assistant",
  system: "system", SystemMessage: "system", developer: "developer",
  tool: "tool", ToolMessage: "tool", function: "function", FunctionMessage: "function",
};

/** The message; undefined if it has a form that is not known, or is no message. */
export function toMessage(one) {
  const fields = one?.lc === 1 ? one.kwargs : one?.data ?? one;
  const role = ROLES[one?.lc === 1 ? one.id?.at(-1) : one?.type ?? one?.role];
  if (!role || typeof fields !== "object") return undefined;
  const message = { role, content: fields.content ?? "" };
  if (typeof message.content !== "string" && !Array.isArray(message.content)) return undefined;
  if (fields.name) message.name = fields.name;
  if (role === "assistant" && fields.tool_calls?.length > 0) {
    message.tool_calls = fields.tool_calls.map(({ id, name, args }) => (
      { id, name, arguments: JSON.stringify(args ?? {}) }));
    // Some providers have the calls among the blocks as well.
    if (Array.isArray(message.content)) {
      message.content = message.content.filter((block) => block?.type !== "tool_use");
    }
  }
  if (role === "tool") {
    message.tool_call_id = fields.tool_call_id;
    if (fields.status === "error") message.is_error = true;
  }
  if (fields.id) message.langgraph = { id: fields.id };
  return message;
}
