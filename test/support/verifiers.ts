/** Other people's DKIM verifiers, with the DNS records given rather than asked for. */
export interface DkimRecord {
  name: string;
  value: string;
}

export const hasDkimpy = python("import dkim, nacl");
export const hasOpendkim = python("import ctypes; ctypes.CDLL('libopendkim.so.11')");

/** One verdict for each of the first two signatures. */
export function dkimpyPasses(mail: Buffer, records: DkimRecord[]): boolean[] {
  return askPython(DKIMPY, mail, records)
    .split(" ")
    .map((word) => word === "True");
}

/** Whether a signature it understands passes (RSA only, in the version of Debian). */
export function opendkimPasses(mail: Buffer, records: DkimRecord[]): boolean {
  return askPython(OPENDKIM, mail, records) === "0";
}

function python(check: string): boolean {
  if (Bun.which("/usr/bin/python3") === null) return false;
  return Bun.spawnSync(["/usr/bin/python3", "-c", check], { stderr: "ignore" }).success;
}

function askPython(script: string, mail: Buffer, records: DkimRecord[]): string {
  const table = JSON.stringify(Object.fromEntries(records.map(({ name, value }) => [name, value])));
  const run = Bun.spawnSync(["/usr/bin/python3", "-c", script, table], { stdin: mail, stderr: "inherit" });
  return run.stdout.toString().trim();
}

const DKIMPY = `
import dkim, json, sys
records = json.loads(sys.argv[1])
mail = sys.stdin.buffer.read()
lookup = lambda name, timeout=5: records[name.decode().rstrip(".")].encode()
def passes(index):
    try:
        return dkim.DKIM(mail).verify(idx=index, dnsfunc=lookup)
    except dkim.ValidationError:
        return False
print(passes(0), passes(1))
`;

const OPENDKIM = `
import ctypes, json, sys
records = json.loads(sys.argv[1])
mail = sys.stdin.buffer.read()
lib = ctypes.CDLL("libopendkim.so.11")
for name in ("dkim_init", "dkim_verify", "dkim_sig_getselector", "dkim_sig_getdomain"):
    getattr(lib, name).restype = ctypes.c_void_p
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
def lookup(dkim, sig, buffer, size):
    part = lambda get: ctypes.string_at(get(ctypes.c_void_p(sig))).decode()
    name = part(lib.dkim_sig_getselector) + "._domainkey." + part(lib.dkim_sig_getdomain)
    value = records[name].encode() + b"\\0"
    ctypes.memmove(buffer, value, len(value))
    return 0
handle = ctypes.c_void_p(lib.dkim_init(None, None))
lib.dkim_set_key_lookup(handle, lookup)
status = ctypes.c_int()
dkim = ctypes.c_void_p(lib.dkim_verify(handle, b"test", None, ctypes.byref(status)))
lib.dkim_chunk(dkim, mail, ctypes.c_size_t(len(mail)))
lib.dkim_chunk(dkim, None, ctypes.c_size_t(0))
print(lib.dkim_eom(dkim, None))
`;
