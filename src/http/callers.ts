const waiting = new Set<Request>();

/**
 * Notes that a request has a valid credential, until `forgetCaller`: its connection is not closed when handles run out.
 */
export function noteCaller(request: Request): void {
  waiting.add(request);
}

export function forgetCaller(request: Request): void {
  waiting.delete(request);
}

/** Returns the requests with a valid credential that have not been answered. */
export function callersWaiting(): Request[] {
  return [...waiting];
}
