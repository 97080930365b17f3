/** A receiver that takes every webhook at once, in a process of its own. Prints its port; GET / gives when each id came first. */
const arrived = new Map<string, number>();

const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    if (request.method === "GET") return Response.json(Object.fromEntries(arrived));
    const id = request.headers.get("webhook-id") ?? "";
    if (!arrived.has(id)) arrived.set(id, performance.timeOrigin + performance.now());
    await request.arrayBuffer();
    return new Response("ok");
  },
});
console.log(receiver.port);
