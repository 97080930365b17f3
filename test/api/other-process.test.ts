import { expect, test } from "bun:test";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { testApp, type TestApp } from "../support/app.ts";
import { LISTEN, openDoor } from "./door.ts";

test("the request after a key was made or revoked beside the server knows of it, whatever was read in the same tick", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-beside-"));
  const path = join(dir, "mailwright.db");
  {
    await using t = await testApp({ server: LISTEN, database: { url: `sqlite:${path}` } });
    await using door = await openDoor(t);
    const ada = await t.as("ada@example.com");
    const beside = new Sqlite(path);
    const [row] = beside.prepare("select * from api_keys").all() as [object];
    const socket = connect(door.port, door.host);
    await once(socket, "connect");
    const ask = (change: () => unknown): Promise<string> =>
      inOneTick(t, () => {
        change();
        socket.write(`GET /auth/me HTTP/1.1\r\nHost: mw.test\r\nX-API-Key: ${ada.key}\r\n\r\n`);
        return once(socket, "data").then(String);
      });
    const remove = beside.prepare("delete from api_keys");
    const names = Object.keys(row);
    const add = beside.prepare(
      `insert into api_keys (${names.join()}) values (${names.map((name) => `@${name}`).join()})`,
    );
    for (let round = 0; round < 5; round += 1) {
      expect(await ask(() => remove.run())).toStartWith("HTTP/1.1 401");
      expect(await ask(() => add.run(row))).toStartWith("HTTP/1.1 200");
    }
    socket.destroy();
    beside.close();
  }
  await rm(dir, { recursive: true });
});

/** What is done between a read of the server and its next look at its sockets. */
function inOneTick<T>({ app }: TestApp, act: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      app.db.selectFrom("users").select("id").execute().catch(reject);
      act().then(resolve, reject);
    });
  });
}
