/** The response parser llhttp as node:http uses it (lib/_http_common.js of Node); only what parsing responses needs. */
declare module "node:_http_common" {
  export class HTTPParser {
    static readonly RESPONSE: 2;
    static readonly kOnMessageBegin: 0;
    static readonly kOnHeaders: 1;
    static readonly kOnHeadersComplete: 2;
    static readonly kOnBody: 3;
    static readonly kOnMessageComplete: 4;
    initialize(type: typeof HTTPParser.RESPONSE, resource: object, max_head_bytes: number): void;
    /** Returns the number of bytes read, or an error with a code that starts with HPE_. */
    execute(part: Buffer): number | Error;
    [HTTPParser.kOnMessageBegin]: () => void;
    /** Called with alternating names and values when there are more than fit into one call. */
    [HTTPParser.kOnHeaders]: (raw: string[]) => void;
    /** Returns 2 where no HTTP follows, else 0. */
    [HTTPParser.kOnHeadersComplete]: (...head: Head) => 0 | 2;
    [HTTPParser.kOnBody]: (part: Buffer) => void;
    [HTTPParser.kOnMessageComplete]: () => void;
  }

  type Head = [
    major: number,
    minor: number,
    raw: string[] | undefined,
    method: undefined,
    url: undefined,
    status: number,
    reason: string,
    is_upgrade: boolean,
    keeps: boolean,
  ];
}
