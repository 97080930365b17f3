import type { AnyRouter } from "@tanstack/react-router";

/**
 * For who has no mouse: a new page begins at its heading, and what vanishes with the focus in it, such as a button
 * that has done its work, hands it to the heading of what was around it.
 */
export function keepFocus(router: AnyRouter): void {
  router.subscribe("onRendered", ({ fromLocation, pathChanged }) => {
    if (fromLocation && pathChanged) beginPage();
  });
  let trail: Element[] = [];
  document.addEventListener("focusin", ({ target }) => {
    trail = trailOf(target);
  });
  // The focus was taken away on purpose, by a click beside everything, unless its place is gone a moment later.
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    if (relatedTarget === null)
      queueMicrotask(() => {
        if ((target as Element).isConnected) trail = [];
      });
  });
  new MutationObserver(() => {
    if (!isLost() || trail.length === 0 || trail[0]?.isConnected) return;
    const around = trail.find((element) => element.isConnected);
    trail = [];
    headingOf(around?.closest("section, dialog[open], main"))?.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
}

/** Moves the focus within the page, unless somebody has left the page for the navigation meanwhile. */
export function moveFocus(target: HTMLElement | null): void {
  if (isLost() || document.activeElement?.closest("main")) target?.focus();
}

/** Not where the page has put the focus into a field of its own. Where the page is scrolled to is the router's to say. */
function beginPage(): void {
  const main = document.querySelector("main");
  const active = document.activeElement;
  if (active === main || !main?.contains(active)) headingOf(main)?.focus({ preventScroll: true });
}

function headingOf(part: Element | null | undefined): HTMLElement | null {
  const place = part ?? document.querySelector("main");
  const target = place?.querySelector<HTMLElement>("h1, h2, h3") ?? place;
  if (!(target instanceof HTMLElement)) return null;
  if (!target.hasAttribute("tabindex")) target.tabIndex = -1;
  return target;
}

function isLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

/** An element and all that is around it, the innermost first. */
function trailOf(target: EventTarget | null): Element[] {
  const trail: Element[] = [];
  for (let at = target as Element | null; at; at = at.parentElement) trail.push(at);
  return trail;
}
