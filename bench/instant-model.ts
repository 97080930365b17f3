/** An OpenAI-compatible model that answers at once, in a process of its own. Prints its port. */
const answer = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_767_225_600,
  model: "instant",
  choices: [{ index: 0, message: { role: "assistant", content: "Done: 42." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
});

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    await request.arrayBuffer();
    return new Response(answer, { headers: { "content-type": "application/json" } });
  },
});
console.log(server.port);
