/**
 * Styles of mails. They are inline, as Gmail and Outlook require. Text has the colour of the mail program, in light and
 * dark mode; whatever has a background has its own text colour too.
 */
const LINE = "#d0d7de";
const QUIET = "#656d76";
const FONT = "'Segoe UI',-apple-system,BlinkMacSystemFont,Roboto,Helvetica,Arial,sans-serif";
const FIXED = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Courier New',monospace";
/** Margin below a block. */
const GAP = "0 0 16px";
const HEADING = "line-height:1.3;font-weight:600";
const CELL = `padding:7px 8px;border-bottom:1px solid ${LINE}`;

export const LOOK = {
  page: `max-width:680px;padding:8px;font-family:${FONT};font-size:16px;line-height:1.55;word-wrap:break-word`,
  p: `margin:${GAP}`,
  h1: `margin:0 0 12px;font-size:24px;${HEADING}`,
  h2: `margin:0 0 10px;font-size:20px;${HEADING}`,
  h3: `margin:0 0 8px;font-size:17px;${HEADING}`,
  h4: `margin:0 0 8px;font-size:16px;${HEADING}`,
  h5: `margin:0 0 8px;font-size:15px;${HEADING}`,
  h6: `margin:0 0 8px;font-size:14px;${HEADING}`,
  /** A heading that is not the first block. */
  h1_below: `margin:32px 0 12px;font-size:24px;${HEADING}`,
  h2_below: `margin:28px 0 10px;font-size:20px;${HEADING}`,
  h3_below: `margin:24px 0 8px;font-size:17px;${HEADING}`,
  h4_below: `margin:20px 0 8px;font-size:16px;${HEADING}`,
  h5_below: `margin:20px 0 8px;font-size:15px;${HEADING}`,
  h6_below: `margin:20px 0 8px;font-size:14px;${HEADING}`,
  list: `margin:${GAP};padding:0 0 0 26px`,
  list_auto: `margin:${GAP}`,
  list_within: "margin:4px 0 0;padding:0 0 0 22px",
  list_within_auto: "margin:4px 0 0",
  li: "margin:0 0 5px",
  task: "margin:0 0 5px;list-style:none",
  /** A paragraph in an item or a quote. */
  p_within: "margin:0 0 8px",
  blockquote: `margin:${GAP};padding:2px 0 1px 14px;border-left:3px solid ${LINE}`,
  blockquote_auto: `margin:${GAP};padding:2px 14px;border-inline-start:3px solid ${LINE}`,
  hr: `margin:24px 0;height:1px;border:0;background:${LINE};color:${LINE}`,
  pre: `margin:${GAP};padding:12px 14px;border:1px solid ${LINE};border-radius:6px;background:#f6f8fa;color:#1f2328;font-family:${FIXED};font-size:13px;line-height:1.5;white-space:pre-wrap;word-wrap:break-word`,
  code: `padding:1px 4px;border-radius:4px;background:#eceff2;color:#1f2328;font-family:${FIXED};font-size:14px`,
  a: "color:#0b5cd5;text-decoration:underline",
  /** Scrolls where the table is too wide. */
  wide: `margin:${GAP};overflow-x:auto`,
  table: "border-collapse:collapse;font-size:15px;line-height:1.4",
  th: `padding:7px 8px;border-bottom:2px solid ${LINE};font-weight:600`,
  th_auto: `padding:7px 8px;border-bottom:2px solid ${LINE};font-weight:600;text-align:start`,
  td: CELL,
  /** A cell of sentences, which would otherwise become as narrow as its longest word. */
  td_words: `${CELL};min-width:150px`,
  /** A cell with a word that is wider than a telephone. */
  td_long: `${CELL};min-width:150px;word-break:break-all`,
  img: "max-width:100%;height:auto;border:0",
  caption: `color:${QUIET};font-size:14px`,
  sup: "font-size:11px;line-height:0",
  note: `margin:0 0 6px;color:${QUIET};font-size:14px`,
  notes: `margin:28px 0 0;padding:14px 0 0;border-top:1px solid ${LINE};color:${QUIET};font-size:14px`,
  footer_of_notes: "margin:0;font-size:13px",
  footer: `margin:28px 0 0;padding:10px 0 0;border-top:1px solid ${LINE};color:${QUIET};font-size:13px`,
} as const;

/** Classes of elements that may need another colour in dark mode. */
export const PAGE_CLASS = "mailwright";
export const QUIET_CLASS = "mw-soft";

/** Rules that cannot be inline; a mail program that drops them still shows the mail. */
export const SHEET = `:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (prefers-color-scheme:dark){
.${PAGE_CLASS} a{color:#8ab4f8!important}
.${PAGE_CLASS} pre,.${PAGE_CLASS} code{background:#22272e!important;color:#e6edf3!important;border-color:#444c56!important}
.${PAGE_CLASS} th,.${PAGE_CLASS} td,.${PAGE_CLASS} blockquote,.${PAGE_CLASS} div{border-color:#444c56!important}
.${PAGE_CLASS} hr{background:#444c56!important;color:#444c56!important}
.${PAGE_CLASS} .${QUIET_CLASS}{color:#a3adb8!important;border-color:#444c56!important}
}`;

/** Outlook on Windows does not inherit fonts into tables. */
export const OUTLOOK_SHEET = `td,th,p,li,h1,h2,h3,h4,h5,h6{font-family:'Segoe UI',Arial,sans-serif}`;
