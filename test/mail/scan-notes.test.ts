import { describe, expect, test } from "bun:test";
import { splitNewText } from "../../src/trust/own-words/reply-text.ts";
import { hasAddressOfOthers } from "../../src/trust/own-words/shared-page.ts";

const WORDS = "Add milk to the shopping list.";
const RULE = "_".repeat(70);
const AVAST = "https://www.avast.com/sig-email?utm_medium=email";

const cutOf = (text: string, html?: string) => splitNewText({ text, html }, { fresh: true });

describe("what a scanner or a gateway puts below a mail is neither an order nor anything of others", () => {
  test.each([
    ["\n-- \nDiese E-Mail wurde von Avast-Antivirussoftware auf Viren geprüft.\nwww.avast.com"],
    ["\n--\nDiese E-Mail wurde von AVG-Antivirussoftware auf Viren geprüft.\nwww.avg.com"],
    [
      "\n---\nThis email has been checked for viruses by Avast antivirus software.\nhttps://www.avast.com/antivirus",
    ],
    ["\n\nVirus-free. www.avast.com"],
    [`\n\nVirenfrei.www.avast.com\n<${AVAST}>\n<#DAB4FAD8-2DD7-40BB-A1B8-4E2AA1F9FDF2>`],
    [
      "\n---\nL'absence de virus dans ce courrier électronique a été vérifiée par le logiciel antivirus Avast.\nhttps://www.avast.com/antivirus",
    ],
    ["\n---\nEl software de antivirus Avast ha analizado este correo electrónico en busca de virus."],
    ["\n\nNo virus found in this message.\nChecked by AVG - www.avg.com\nVersion: 2016.0.7998"],
    [
      "\n\n__________ Information from ESET NOD32 Antivirus __________\n\nThe message was checked by ESET NOD32 Antivirus.\n\nhttp://www.eset.com",
    ],
    [
      `\n\n${RULE}\nThis email has been scanned by the Symantec Email Security.cloud service.\nFor more information please visit http://www.symanteccloud.com\n${RULE}`,
    ],
    [
      "\n\nThis email has been scanned for viruses and malware by Mimecast Ltd. To find out more visit <http://www.mimecast.com/products/>.",
    ],
    [
      `\n\n${"-".repeat(80)}\nCONFIDENTIALITY NOTICE: This e-mail is confidential. Please delete it if you are not the recipient.`,
    ],
    [
      "\n--\nGesendet mit der Telekom Mail App <https://kommunikationsdienste.t-online.de/redirects/email_app_footer>",
    ],
  ])("in plain text: %j", (note) => {
    const cut = cutOf(`${WORDS}\n${note}`);
    expect(cut).toMatchObject({ new_text: WORDS, whole: true, rest_text: "" });
    expect(hasAddressOfOthers(cut.marked_off, "ada@example.com")).toBe(false);
  });

  test("in HTML", () => {
    const html = `<div dir="ltr">${WORDS}</div><div id="DAB4FAD8-2DD7-40BB-A1B8-4E2AA1F9FDF2"><br><table style="border-top: 1px solid #D3D4DE;"><tr><td><a href="${AVAST}"><img src="https://s-install.avcdn.net/icon.gif" alt=""></a></td><td>Virus-free.<a href="${AVAST}">www.avast.com</a></td></tr></table><a href="#DAB4FAD8"> </a></div>`;
    const text = `${WORDS}\n\n<${AVAST}>\nVirus-free.www.avast.com\n<${AVAST}>`;
    expect(splitNewText({ html }, { fresh: true })).toMatchObject({ new_text: WORDS, whole: true });
    const cut = cutOf(text, html);
    expect(cut).toMatchObject({ new_text: WORDS, whole: true, rest_text: "" });
    expect(hasAddressOfOthers(cut.marked_off, "ada@example.com")).toBe(false);
  });
});

test("an address of others below such a note is still one", () => {
  for (const address of ["https://eve.example.net/post", "https://eve.example.net/www.avast.com"]) {
    const { marked_off } = cutOf(`Nice post\n\nVirus-free. www.avast.com\n${address}`);
    expect(hasAddressOfOthers(marked_off, "ada@example.com")).toBe(true);
  }
});

test.each([
  "Cancel the Avast antivirus subscription",
  "Read what www.avast.com says of viruses",
  "This message is for Bob: scan the invoices",
  "This email has been scanned by Bob and is to be filed",
  "Diese E-Mail wurde gestern geschrieben, lege sie ab",
  "Disclaimer: I have not read it. Please sum it up.",
  "Information from Eve: the security code is 12",
])("words of one's own about these stay one's own: %j", (words) => {
  expect(cutOf(`${WORDS}\n\n${words}\n\nThen call Bob.`).new_text).toBe(
    `${WORDS}\n\n${words}\n\nThen call Bob.`,
  );
});
