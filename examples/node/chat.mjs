// chat.mjs: a chat that remembers. Each line of the input is a question; question and answer are
// stored as one turn. When it is started again with the same name, it goes on where it was.
//
//   sessile rpc --client node > sessile.mjs
//   node chat.mjs tram
//
// /undo takes back the newest question and its answer, /context prints what the model would get.
// With OPENAI_BASE_URL and OPENAI_MODEL (and OPENAI_API_KEY) it asks that endpoint, else a script.
import process from "node:process";
import { createInterface } from "node:readline";
import { Sessile } from "./sessile.mjs";

const { OPENAI_BASE_URL: url, OPENAI_MODEL: name, OPENAI_API_KEY: key } = process.env;

function script(messages) {
  if (messages[0].role === "system") return "Some questions were asked and answered."; // a summary
  const questions = messages.filter(({ role }) => role === "user");
  return `You asked ${questions.length} things; the newest is: ${questions.at(-1)?.content}`;
}

async function ask(messages) {
  if (!url) return script(messages);
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...key && { authorization: `Bearer ${key}` } },
    body: JSON.stringify({ model: name, messages }),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return (await response.json()).choices[0].message.content;
}

const session = process.argv[2] ?? "chat";
const store = new Sessile({
  command: process.env.SESSILE_BIN ?? "sessile",
  answers: { // the policy asks for summaries
    model: async ({ request }) => ({ text: await ask(request.messages) }),
  },
});

const context = async () => (await store.call("session/context", { session })).messages;

async function answer(line) {
  if (line === "/undo") {
    await store.call("session/pop", { session, n: 2 });
    return "taken back";
  }
  if (line === "/context") {
    return (await context()).map(({ message }) => `${message.role}: ${message.content}`).join("\n");
  }
  const question = { role: "user", content: line };
  const text = await ask([...(await context()).map(({ message }) => message), question]);
  const { policy } = await store.call("session/turn",
    { session, messages: [question, { role: "assistant", content: text }] });
  return policy?.applied ? `${text}\n(older messages were summarized)` : text;
}

try {
  await store.call("session/open", {
    session, create: true, window: Number(process.env.WINDOW ?? 8000), policy: "summarize",
  });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() !== "") console.log(await answer(line.trim()));
  }
} catch (why) {
  console.error(`chat: ${why.message}${why.next ? `\n${why.next}` : ""}`);
  process.exitCode = 1;
}
await store.close();
