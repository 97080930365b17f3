import type { DnsZone } from "./dns-server.ts";

/** One mail as other people's programs get to see it. */
export interface Question {
  /** Base64. */
  raw: string;
  ip: string;
  helo: string;
  mail_from: string;
  zone: DnsZone;
  /** Names for which the DNS gives no answer. */
  silent: string[];
  sealers: string[];
}

export interface Opinion {
  /** By the rule that ours is made of: DMARC passes, or an aligned signature where no record is published. */
  authenticated: boolean;
  spf: string;
  /** Domains whose signatures pass. */
  dkim: string[];
  dmarc: string;
  /** The result for the whole chain; "" where none is looked at. */
  arc: string;
}

const SUFFIXES = "/usr/share/publicsuffix/public_suffix_list.dat";
const NEEDS = `import authres, dkim, nacl, spf, ctypes; ctypes.CDLL("libopendmarc.so.2"); open("${SUFFIXES}")`;
const PYTHON = "/usr/bin/python3";

export const hasSecondOpinion =
  Bun.which(PYTHON) !== null && Bun.spawnSync([PYTHON, "-c", NEEDS], { stderr: "ignore" }).success;

/** What dkimpy, pyspf and libopendmarc find, each with its own code and its own reading of the mail. */
export function secondOpinions(questions: Question[]): Opinion[] {
  const run = Bun.spawnSync([PYTHON, "-c", SCRIPT], {
    stdin: Buffer.from(JSON.stringify(questions)),
    stderr: "inherit",
  });
  return JSON.parse(run.stdout.toString()) as Opinion[];
}

const SCRIPT = `
import base64, ctypes, email, email.utils, json, sys
import authres, dkim, spf

lib = ctypes.CDLL("libopendmarc.so.2")
lib.opendmarc_policy_connect_init.restype = ctypes.c_void_p
lib.opendmarc_tld_read_file(b"${SUFFIXES}", b"//", b"*.", b"!")
PASS, ACCEPT = 1, 15

def org(domain):
    found = ctypes.create_string_buffer(256)
    lib.opendmarc_get_tld(domain.encode(), found, 256)
    return found.value.decode() or domain

class Names:
    def __init__(self, zone, silent):
        self.zone, self.silent = zone, set(silent)
    def get(self, name, kind):
        name = name.rstrip(".").lower()
        for _ in range(10):
            if name in self.silent: raise TimeoutError(name)
            records = self.zone.get(name, {})
            if kind in records: return name, records[kind]
            if "CNAME" not in records: return name, []
            name = records["CNAME"][0]
        return name, []
    def text(self, name):
        return ["".join(one) if isinstance(one, list) else one for one in self.get(name, "TXT")[1]]
    def for_dkim(self, name, timeout=5):
        try: found = self.text(name.decode())
        except TimeoutError: raise dkim.DnsTimeoutError("no answer")
        return found[0].encode() if found else None
    def for_spf(self, name, kind, strict=True, timeout=5):
        try: owner, found = self.get(name, kind)
        except TimeoutError: raise spf.TempError("no answer")
        def value(one):
            if kind in ("TXT", "SPF"): return (one.encode(),)
            return tuple(one) if kind == "MX" else one
        return [((owner, kind), value(one)) for one in found]

def signatures(raw, names):
    fields = [name.lower() for name in email.message_from_bytes(raw).keys()]
    passed = []
    for index in range(fields.count("dkim-signature")):
        check = dkim.DKIM(raw, minkey=1024)
        try: ok = check.verify(idx=index, dnsfunc=names.for_dkim)
        except (dkim.DKIMException, Exception): ok = False
        if ok: passed.append(check.domain.decode().lower())
    return passed

def sender(question, names):
    spf.DNSLookup = names.for_spf
    query = spf.query(i=question["ip"].replace("::ffff:", ""), s=question["mail_from"], h=question["helo"])
    result = query.check()[0]
    return result, (query.o or "").lower()

def record(domain, names):
    name = "_dmarc." + domain
    found = [text for text in names.text(name) if text.startswith("v=DMARC1")]
    return found[0] if len(found) == 1 else None

def policy(question, author, passed, spf_result, spf_domain, names):
    found = record(author, names) or record(org(author), names)
    if found is None: return "none"
    ip = question["ip"].replace("::ffff:", "")
    context = ctypes.c_void_p(lib.opendmarc_policy_connect_init(ip.encode(), ":" in ip))
    lib.opendmarc_policy_store_from_domain(context, author.encode())
    if lib.opendmarc_policy_store_dmarc(context, found.encode(), author.encode(), org(author).encode()) != 0: return "none"
    for domain in passed:
        lib.opendmarc_policy_store_dkim(context, domain.encode(), b"s", PASS, None)
    if spf_result == "pass":
        origin = 0 if question["mail_from"] else 1
        lib.opendmarc_policy_store_spf(context, spf_domain.encode(), PASS, origin, None)
    verdict = lib.opendmarc_get_policy_to_enforce(context)
    lib.opendmarc_policy_connect_shutdown(context)
    return "pass" if verdict == ACCEPT else "fail"

def sealed(raw, sealers, author, names):
    status, sets, _ = dkim.arc_verify(raw, dnsfunc=names.for_dkim)
    status = status.decode() if isinstance(status, bytes) else str(status)
    if status != "pass": return status, False
    for one in sorted(sets, key=lambda one: -one["instance"]):
        if one["as-domain"].decode() not in sealers: break
        text = one["aar-value"].decode().split(";", 1)[1]
        said = authres.AuthenticationResultsHeader.parse("Authentication-Results:" + text).results
        for result in said:
            about = [one.value for one in result.properties if (one.type, one.name) == ("header", "from")]
            if result.method == "dmarc" and result.result == "pass" and author in about: return status, True
    return status, False

def judge(question):
    raw, names = base64.b64decode(question["raw"]), Names(question["zone"], question["silent"])
    mail = email.message_from_string(raw.decode("utf-8", "replace"))
    address = email.utils.parseaddr(str(mail["From"]))[1]
    author = address.rsplit("@", 1)[-1].lower()
    if not author.isascii(): author = author.encode("idna").decode()
    passed = signatures(raw, names)
    spf_result, spf_domain = sender(question, names)
    try: dmarc = policy(question, author, passed, spf_result, spf_domain, names)
    except TimeoutError: dmarc = "temperror"
    authenticated = dmarc == "pass" or (dmarc == "none" and author in passed)
    arc = ""
    if question["sealers"] and not authenticated:
        arc, authenticated = sealed(raw, question["sealers"], author, names)
    return {"authenticated": authenticated, "spf": spf_result, "dkim": passed, "dmarc": dmarc, "arc": arc}

print(json.dumps([judge(question) for question in json.load(sys.stdin)]))
`;
