import { wordsInKey } from "./prose.ts";
import { wordSet } from "./words.ts";

/**
 * Schemes by which something outside of a tool's own server is reached without the name of an internet host: in its
 * network, in a store of files, in a network without servers, by a messenger. `file` leads to more than its own things.
 */
const ELSEWHERE = wordSet(
  "http https ftp ftps sftp tftp scp ssh ws wss file smb cifs nfs rsync git svn s3 s3a gs gcs az azblob abfs abfss wasb wasbs hdfs oss cos b2 swift ipfs ipns dweb ar hyper dat magnet at did nostr matrix mxc xmpp irc sip mailto tel sms mms skype whatsapp tg slack discord msteams zoommtg javascript data blob jar about chrome intent market itms docker oci npm pypi github gitlab hf bitcoin ethereum lightning",
);

const URI = /^([a-z][a-z0-9+.-]{1,20}):\/\/([^/\\?#]*)/i;
/** A name of one or more words; a number may be a host (`2130706433`), and so may a word with a dot. */
const WORDS = /^(?!(?:0x[0-9a-f]+|\d+)$)[\p{L}\p{N}_-]+(?: [\p{L}\p{N}_-]+)*$/iu;
/** Names of the machine or network that the tool runs in. */
const NEAR = /^(?:localhost|local|internal)$/i;
/** A path, maybe with the method of a request. A second slash, or a dot in its first name, may make that a host. */
const PATH = /^(?:[A-Z]{3,7} )?\/(?![/\\]|[^\s/\\?#]*\.\p{L})\S*$/u;
const IN_PAGE = /^[?#]\S*$/;

function isWords(text: string): boolean {
  return WORDS.test(text) && !NEAR.test(text);
}

/**
 * Returns whether a tool server can only mean a thing of its own by a URI (`note://groceries`): no name server knows
 * what it names.
 */
export function isOwnUri(uri: string): boolean {
  const [head = "", scheme = "", name = ""] = URI.exec(uri) ?? [];
  const rest = uri.slice(head.length);
  if (scheme === "" || ELSEWHERE.has(scheme.toLowerCase()) || /[/\\]{2}/.test(rest)) return false;
  return name === "" ? rest !== "" : isWords(name.replaceAll(/%[0-9a-f]{2}/gi, "_"));
}

/** Returns whether a value names a thing of the tool's own server, and no host: `note://groceries`, `/events`, `?page=2`. */
export function isOwnName(value: string): boolean {
  return value === "" || PATH.test(value) || IN_PAGE.test(value) || isOwnUri(value);
}

/** What a parameter is called that holds an address, at the end of its name. */
const ADDRESSES = wordSet(
  "url urls uri uris href webhook webhooks hook hooks callback callbacks endpoint endpoints",
);

/**
 * Returns whether a value says something about an address (`webhook_enabled`, `callback_name`). As an address itself, a
 * word is the name of a machine in the network of the tool.
 */
export function isAboutAddress(key: string, value: string): boolean {
  if (/^(?:true|false)$/i.test(value)) return true;
  return !ADDRESSES.has(wordsInKey(key).findLast((word) => word !== "") ?? "") && isWords(value);
}
