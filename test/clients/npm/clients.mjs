// Asks one thing with one of the field's JavaScript clients and prints what the client put together, as one JSON object:
// {text, thinking, calls: [{name, arguments}], finish, prompt, completion, vectors}. Where the server is comes from the
// environment, as for any program: OPENAI_BASE_URL, ANTHROPIC_BASE_URL, OLLAMA_HOST. No call is repeated.
//
//   node clients.mjs CASE
//
// A client is loaded when its case is asked for: all of them take a second.

const model = "sim";
const prompt = "tell me about the sea";
const apiKey = process.env.TEST_KEY;
const limit = 24;
const weather = { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } };

async function openai() {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({ apiKey, maxRetries: 0 });
}

async function anthropic() {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  return new Anthropic({ apiKey, maxRetries: 0 });
}

async function ollama() {
  const { Ollama } = await import("ollama");
  return new Ollama({ host: process.env.OLLAMA_HOST });
}

async function compatible() {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return createOpenAICompatible({ name: "sim", apiKey, baseURL: process.env.OPENAI_BASE_URL, includeUsage: true })(model);
}

const chatTools = [{ type: "function", function: { name: "get_weather", parameters: weather } }];
const messages = [{ role: "user", content: prompt }];

function chatAnswer(message, finish, usage) {
  return {
    text: message.content ?? "",
    calls: (message.tool_calls ?? []).map((c) => ({ name: c.function.name, arguments: c.function.arguments })),
    finish,
    prompt: usage.prompt_tokens,
    completion: usage.completion_tokens,
  };
}

// openaiChat reads a stream with the client's own accumulator.
async function openaiChat(extra, streamed) {
  const { completions } = (await openai()).chat;
  const body = { model, messages, max_tokens: limit, ...extra };
  const r = streamed
    ? await completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
    : await completions.create(body);
  return chatAnswer(r.choices[0].message, r.choices[0].finish_reason, r.usage);
}

async function openaiResponse(extra, streamed) {
  const body = { model, input: prompt, max_output_tokens: limit, ...extra };
  const { responses } = await openai();
  const r = streamed ? await responses.stream(body).finalResponse() : await responses.create(body);
  const of = (type) => r.output.filter((item) => item.type === type);
  return {
    text: r.output_text,
    thinking: of("reasoning").flatMap((item) => item.summary.map((part) => part.text)).join(""),
    calls: of("function_call").map((item) => ({ name: item.name, arguments: item.arguments })),
    finish: r.status,
    prompt: r.usage.input_tokens,
    completion: r.usage.output_tokens,
  };
}

async function openaiEmbeddings() {
  // Without a wish the client asks for base64 and decodes it.
  const r = await (await openai()).embeddings.create({ model, input: ["the sea", "a tower of stone"] });
  return { vectors: r.data.map((e) => Array.from(e.embedding)), prompt: r.usage.prompt_tokens };
}

async function message(extra, streamed) {
  const body = { model, max_tokens: 2048, messages, ...extra };
  const client = (await anthropic()).messages;
  const m = streamed ? await client.stream(body).finalMessage() : await client.create(body);
  const of = (type) => m.content.filter((block) => block.type === type);
  return {
    text: of("text").map((b) => b.text).join(""),
    thinking: of("thinking").map((b) => b.thinking).join(""),
    calls: of("tool_use").map((b) => ({ name: b.name, arguments: JSON.stringify(b.input) })),
    finish: m.stop_reason,
    prompt: m.usage.input_tokens + m.usage.cache_read_input_tokens + m.usage.cache_creation_input_tokens,
    completion: m.usage.output_tokens,
  };
}

async function vercel(streamed, withTools) {
  const { generateText, jsonSchema, streamText, tool } = await import("ai");
  const ask = { model: await compatible(), prompt, maxOutputTokens: limit, maxRetries: 0 };
  if (withTools) ask.tools = { get_weather: tool({ inputSchema: jsonSchema(weather) }) };
  const r = streamed ? streamText(ask) : await generateText(ask);
  if (streamed) {
    for await (const part of r.fullStream) {
      if (part.type === "error") throw part.error;
    }
  }
  const usage = await r.usage;
  return {
    text: await r.text,
    thinking: (await r.reasoningText) ?? "",
    calls: (await r.toolCalls).map((c) => ({ name: c.toolName, arguments: JSON.stringify(c.input) })),
    finish: await r.finishReason,
    prompt: usage.inputTokens,
    completion: usage.outputTokens,
  };
}

// ollamaAnswer joins the parts of a stream; a plain answer is one part.
async function ollamaAnswer(parts) {
  const a = { text: "", thinking: "", calls: [] };
  for await (const r of parts) {
    const said = r.message ?? { content: r.response, thinking: r.thinking };
    a.text += said.content;
    a.thinking += said.thinking ?? "";
    for (const c of said.tool_calls ?? []) {
      a.calls.push({ name: c.function.name, arguments: JSON.stringify(c.function.arguments) });
    }
    if (r.done) {
      Object.assign(a, { finish: r.done_reason, prompt: r.prompt_eval_count, completion: r.eval_count });
    }
  }
  return a;
}

async function ollamaAsk(method, extra, stream) {
  const r = await (await ollama())[method]({ model, stream, ...(method === "chat" ? { messages } : { prompt }), ...extra });
  return ollamaAnswer(stream ? r : [r]);
}

async function ollamaEmbed() {
  const r = await (await ollama()).embed({ model, input: ["the sea", "a tower of stone"] });
  return { vectors: r.embeddings, prompt: r.prompt_eval_count };
}

const thinkingTokens = { type: "enabled", budget_tokens: 1024 };
const messageTools = { tools: [{ name: "get_weather", input_schema: weather }] };
const responseTools = { tools: [{ type: "function", name: "get_weather", parameters: weather, strict: false }] };

const cases = {
  "openai chat": () => openaiChat({}, false),
  "openai chat streamed": () => openaiChat({}, true),
  "openai chat tools streamed": () => openaiChat({ tools: chatTools }, true),
  "openai responses": () => openaiResponse({}, false),
  "openai responses streamed": () => openaiResponse({ reasoning: { effort: "low" } }, true),
  "openai responses tools streamed": () => openaiResponse(responseTools, true),
  "openai embeddings": openaiEmbeddings,
  "anthropic": () => message({}, false),
  "anthropic streamed": () => message({ thinking: thinkingTokens }, true),
  "anthropic tools streamed": () => message(messageTools, true),
  "ai": () => vercel(false, false),
  "ai streamed": () => vercel(true, false),
  "ai tools streamed": () => vercel(true, true),
  "ollama chat": () => ollamaAsk("chat", { options: { num_predict: limit } }, false),
  "ollama chat streamed": () => ollamaAsk("chat", { think: true }, true),
  "ollama chat tools streamed": () => ollamaAsk("chat", { tools: chatTools }, true),
  "ollama generate streamed": () => ollamaAsk("generate", {}, true),
  "ollama embed": ollamaEmbed,
};

const run = cases[process.argv[2]];
if (!run) {
  console.error(`usage: node clients.mjs CASE; the cases are:\n${Object.keys(cases).join("\n")}`);
  process.exit(2);
}
console.log(JSON.stringify(await run()));
