const waiting = new Set<Request>();

/** Has a request count as one of somebody with a living credential, until `forgetCaller`. */
export function noteCaller(request: Request): void {
  waiting.add(request);
}

export function forgetCaller(request: Request): void {
  waiting.delete(request);
}

/** The requests of people with a credential that have no answer yet. */
export function callersWaiting(): Request[] {
  return [...waiting];
}
