/** Where a sign-in may lead to: a page of ours, or back to a consent that waits for it, and never another site. */
export function isOwnPath(to: unknown): to is string {
  if (typeof to !== "string" || to.includes("\\")) return false;
  return isPage(to) || /^\/integrations\/[a-z-]+\/callback\?/.test(to);
}

/** Whether the dashboard itself shows it. */
export function isPage(to: string): boolean {
  return /^\/app(\/(?!\/)|$|\?)/.test(to);
}
