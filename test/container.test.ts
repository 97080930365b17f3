import { expect, test } from "bun:test";
import { join } from "node:path";
import { builtBinary } from "./support/binary.ts";

const BINARY = await builtBinary();
const DEPLOY = join(import.meta.dir, "../deploy");

/**
 * What the engine does for `compose.yaml`, with what every Linux has: a user without any right, a file system that can
 * only be read, `/tmp` in memory with the engine's own options before those of the file, a network of its own, and a
 * volume. Its first process passes the signal on.
 */
const CONTAINER = `
set -e
mount --make-rprivate /
ip link set lo up
mount -t tmpfs tmpfs /mnt
cp "$BINARY" /mnt/mailwright
install -d -m 700 -o 10001 -g 10001 /mnt/data
mount -t tmpfs -o "noexec,nosuid,nodev,$TMP_OPTIONS" tmpfs /tmp
mount -o remount,bind,ro /
inside="setpriv --reuid=10001 --regid=10001 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs"
$inside touch /etc/anything 2>&1 || true
$inside /mnt/mailwright serve & server=$!
until $inside /mnt/mailwright healthcheck 2>&1; do kill -0 $server; sleep 0.1; done
kill -TERM $server
wait $server
echo "ended with $?"
find /mnt/data -not -user 10001
`;

const can_wall = Bun.spawnSync(["unshare", "--mount", "--net", "--pid", "--fork", "setpriv", "true"]).success;
if (!can_wall) console.log("The compose file is not tried out: as root, apt-get install util-linux iproute2");

test.skipIf(!can_wall)(
  "within the walls of the compose file the server starts, is found healthy without a network, and stops when told to",
  async () => {
    const { services } = Bun.YAML.parse(await Bun.file(join(DEPLOY, "compose.yaml")).text()) as {
      services: { mailwright: Record<string, unknown> & { environment: Record<string, string> } };
    };
    const { environment, ...rest } = services.mailwright;
    const tmp_options = String(rest["tmpfs"]).split(":")[1] ?? "";
    expect(rest).toMatchObject({
      read_only: true,
      tmpfs: [expect.stringMatching(/^\/tmp\b/)],
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      volumes: ["data:/data", "programs:/programs"],
    });
    const dockerfile = await Bun.file(join(DEPLOY, "../Dockerfile")).text();
    for (const line of ["USER 10001:10001", "VOLUME /data", "ENV MAILWRIGHT_DATA__DIR=/data"])
      expect(dockerfile).toContain(`\n${line}\n`);
    const names = Object.entries(environment).map(([name, value]) => [
      name,
      value
        .replaceAll(/\$\{MAIL_HOST[^}]*\}/g, "mx.example.org")
        .replaceAll(/\$\{MAIL_DOMAIN[^}]*\}/g, "mail.example.org"),
    ]);
    const child = Bun.spawn(
      ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINER],
      {
        env: {
          ...Object.fromEntries(names),
          PATH: process.env["PATH"],
          BINARY,
          TMP_OPTIONS: tmp_options,
          MAILWRIGHT_DATA__DIR: "/mnt/data",
        },
        cwd: "/",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(await child.exited).toBe(0);
    expect(out).toContain("Read-only file system");
    expect(out).toContain('"msg":"ready"');
    expect(out).toMatch(/^ready\nThere is no certificate for mx\.example\.org yet\./m);
    expect(out).toEndWith("ended with 0\n");
    // What a bug says has a stack; the log is on the other stream.
    expect(err).toBe("");
  },
  60_000,
);

test.skipIf(!can_wall)(
  "where no program may run in the temporary folder, the binary says so and what to do",
  async () => {
    const script = `mount -t tmpfs -o noexec tmpfs /mnt && exec "$BINARY" user create ada@example.com`;
    const child = Bun.spawn(["unshare", "--mount", "sh", "-c", script], {
      env: { PATH: process.env["PATH"], BINARY, TMPDIR: "/mnt", MAILWRIGHT_DATA__DIR: "/mnt/data" },
      cwd: "/",
      stderr: "pipe",
    });
    const err = await new Response(child.stderr).text();
    expect(await child.exited).toBe(1);
    expect(err).toMatch(/^A part of this program cannot be loaded: .*, or name another with TMPDIR\.\n$/);
  },
);
