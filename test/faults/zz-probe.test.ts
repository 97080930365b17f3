import { test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { account, house, inbox } from "./house.ts";
test("probe", async () => {
    await using model = startModelServer({ fault: "hang" });
    await using at = await house({ llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" } });
    await using server = await at.start();
    const owner = await account(at, "ann@client.example");
    await inbox(server, owner);
    const call = fetch(`${server.http}/v1/messages`, { method: "POST", headers: { "x-api-key": owner.api_key, "content-type": "application/json" }, body: JSON.stringify({ instruction: "hi" }) }).then(async (r) => [r.status, await r.text()], String);
    await model.received(1);
    const t0 = Date.now();
    server.kill("SIGTERM");
    console.log(await server.exited, Date.now() - t0, await call);
    console.log(server.log());
    const db = at.database();
    console.log(db.prepare("select status, attempts, failures, last_error from jobs").all());
}, 200_000);
