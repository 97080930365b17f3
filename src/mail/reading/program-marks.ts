import { decodeWords, type MailHeaders } from "./headers.ts";

/** Fields in which a program gives its name. */
const NAME_FIELDS = ["x-mailer", "user-agent", "x-mimeole", "x-library", "x-mail-agent", "x-powered-by"];
const MAX_NAME_CHARS = 300;

/**
 * Beginnings of the names of programs of web pages, shops, forums, ticket systems and servers, and of the libraries
 * they are made with. None is a program in which people write, nor one with which they send from a command line.
 */
const PROGRAMS = [
  // Libraries of PHP, and programs that send for WordPress and other pages of PHP.
  "phpmailer php phpbb wpmailsmtp easywpsmtp fluentsmtp wordpress drupal joomla mambo typo3 neos contao redaxo rexmailer concrete5 concrete_cms modx silverstripe craft_cms kirby grav processwire e107 xoops impresscms geeklog elxis ez_components ez_publish textpattern serendipity textcube subrion plone zope zotonic umbraco dotnetnuke dnn sitecore kentico",
  "codeigniter nette cakephp laravel lumen symfony yii zend_framework zend_mail zend laminas fuelphp kohana phalcon swiftmailer swift_mailer html_mime_mail html_mime_mail_class htmlmimemail xpertmailer xpm4 pear_mail kaliforms ninjaforms formidable formmail formmailer nms_formmail webform",
  // Forums, wikis and sharing.
  "vbulletin mybb smf simple_machines xenforo ips_php invision_community invision_power ipb ip.board fluxbb punbb flarum woltlab burning_board wbb yabb ikonboard discuz discourse vanilla_forums phorum nodebb fudforum mediawiki dokuwiki moinmoin twiki foswiki xwiki tikiwiki tiki confluence moodle ilias chamilo claroline dokeos sakai blackboard elgg buddypress oxwall mattermost ckan",
  // Shops, accounting and campaigns.
  "magento prestashop opencart oscommerce zen_cart zencart shopware oxid gambio xt:commerce xtcommerce virtuemart woocommerce cs-cart cubecart bigcommerce shopify whmcs civicrm sugarcrm suitecrm vtiger espocrm dolibarr odoo openerp erpnext frappe phplist mailpoet mautic acymailing mailwizz matomo piwik limesurvey pkp open_journal_systems open_conference_systems",
  // Ticket systems, monitoring and build servers.
  "osticket otrs znuny zammad zendesk freshdesk freescout kayako hesk helpspot cerberus glpi itop request_tracker rt_ redmine openproject easyredmine chiliproject mantis mantisbt bugzilla jira trac youtrack roundup phabricator gitlab gitea gerrit jenkins hudson teamcity buildbot nagios icinga zabbix cacti cacti- librenms observium prtg sentry servicenow kanboard taiga lms-",
  // Libraries of Perl, Python, Ruby, Java, Node, Microsoft and others.
  "mime-tools_5.5 perl perl5 python turbomail marrow webpy ruby rubymail actionmailer rails javamail jakarta java smtpsend msgsend sendhtml spring_boot jodd nodemailer node.js nodejs emailjs gomail go-mail go-http microsoft_cdo cdonts aspmail aspemail persits aspnetemail asp.net aspsmart jmail w3_jmail dimac_jmail dundas dotnetopenmail mailkit mimekit aspose chilkat ipworks easymail quiksoft rebex indy coldfusion cold_fusion bluedragon railo lucee power_automate azure-logic-apps microsoft_power store-mailer appwrite",
  // Programs that send patches, with the titles that their authors wrote.
  "git-send-email git_send-email b4 stgit quilt mercurial mercurial-patchbomb bazaar bzr patman",
]
  .flatMap((line) => line.split(" "))
  .map((name) => name.replaceAll("_", " "));

/** Words that are in no name of a program in which people write. */
const PROGRAM_WORD =
  /(?<![a-z])(?:php|perl5?|cgi|jsp|asp\.net|node\.?js|javamail|python|django|codeigniter|cakephp|wordpress|drupal|joomla|typo3|form|forms|web-?forms?|formmail|contact|script|cms|crm|erp|forum|guestbook|wiki|blog|shop|cart|e-?commerce|tickets?|ticketing|help ?desk|newsletters?|notifications?|notifier|bot|cron|backend|system(?! messenger)|mail class|mime class)(?![a-z])|phpmailer|\w::\w/;
/** Web mail and groupware for people, whose names say what they are made of (such as PHP). */
const PEOPLES_WORD = /web-?mail|web mail|groupware|\bimp\b|horde|atmail|usermin/;

/** Fields of such programs, their hosts and sending services, by the beginning of the name behind `X-`. */
const PROGRAM_FIELD =
  /^x-(?:php|phpbb|wpcf7|wpforms|drupal|joomla|typo3|moodle|mediawiki|phplist|mautic|jira|atlassian|confluence|redmine|openproject|gitlab|github|gitea|forgejo|gerrit|phabricator|reviewboard|bugzilla|trac|mantis|roundup|launchpad|savane|rt|otrs|znuny|zammad|zendesk|freshdesk|freescout|osticket|glpi|odoo|servicenow|hubspot|sfdc|discourse|jenkins|hudson|teamcity|sentry|git|svn|cvs|mercurial|hg|pm-metadata|form|web-?form|contact-?form)-/;
const PROGRAM_FIELDS = new Set([
  "x-pm-tag",
  "x-mailgun-variables",
  "x-mailgun-tag",
  "x-smtpapi",
  "x-msys-api",
  "x-campaign",
  "x-campaign-id",
  "x-campaignid",
  "x-originating-script",
  "x-generated-by",
  "x-mailgenerator",
  "x-mail-generator",
  "x-contact-form",
  "x-wpforms",
  "x-ms-mail-application",
  "x-google-appengine-app-id",
  "rt-ticket",
  "rt-originator",
]);
/** cPanel names the folder of the page whose script has sent a mail. Its own web mail is below `/base`. */
const PAGE_FOLDER = /:\/(?!base\b)\S/;

/**
 * Message-IDs made by programs: by SendGrid for a mail without one that came through its API, by Ruby's mail library,
 * by Swift Mailer or by Odoo.
 */
const NAMED_BY_PROGRAM =
  /@(?:geopod-)?ismtpd-?[\w-]{1,60}(?:\.sendgrid\.net)?>?\s*$|_[\da-f]{6,40}@[\w.-]{1,255}\.mail>?\s*$|@swift\.generated>?\s*$|-openerp-/i;
/**
 * Message-IDs that Google gives what its servers send in the name of a user for a script, a form, a document or an
 * application. What people write in Gmail has others (`@mail.gmail.com`).
 */
const NAMED_BY_GOOGLE =
  /^\s*<?(?:autogen-java-[\w-]{1,60}|0{8}[\da-f]{12,40}|[\da-f.]{8,60}\.GAE)@google\.com>?\s*$/i;
/**
 * A Message-ID made by Java's library. It makes those of web mail programs in Java too, which show what they are in the
 * id or in another field.
 */
const NAMED_BY_JAVA = /\.JavaMail\.[^\s<>@]{1,64}@/i;
const PEOPLES_JAVA = /web-?mail|zimbra|open-xchange|\.JavaMail\.(?:yahoo|www|ngmail|defaultuser)@/i;
const PEOPLES_FIELDS = ["x-mailer", "user-agent", "x-originating-ip", "x-originating-client"];

/** Tags that git writes before a subject. */
const SUBJECT_TAG = /^\s*\[([^[\]]{1,80})\]/;
const MAX_SUBJECT_TAGS = 6;
const MAX_SUBJECT_CHARS = 600;
const PATCH_TAG = /(?:^|[\s/:-])(?:PATCH(?:v\d{1,3})?|GIT PULL|PULL REQUEST|PULL)(?:$|[\s/:,-])/;

/**
 * Returns whether a mail's own fields say that a program wrote it from what others entered: a web page, a shop, a
 * ticket system or a server. Mail programs for people write none of these marks.
 */
export function isProgramMail(headers: MailHeaders): boolean {
  return (
    headers.fields.some(({ name }) => PROGRAM_FIELDS.has(name) || PROGRAM_FIELD.test(name)) ||
    NAME_FIELDS.some((field) => headers.all(field).some(isProgramName)) ||
    headers.all("x-source-dir").some((folder) => PAGE_FOLDER.test(folder)) ||
    headers.all("message-id").some((id) => isProgramId(id, headers)) ||
    headers.all("subject").some(isPatch)
  );
}

function isProgramName(value: string): boolean {
  const name = decodeWords(value.slice(0, MAX_NAME_CHARS))
    .toLowerCase()
    .replace(/^produced by /, "")
    .replace(/^[^a-z\d]+/, "");
  if (PEOPLES_WORD.test(name)) return false;
  return (
    PROGRAM_WORD.test(name) ||
    PROGRAMS.some((one) => name.startsWith(one) && !/[a-z]/.test(name.charAt(one.length)))
  );
}

function isProgramId(id: string, headers: MailHeaders): boolean {
  if (NAMED_BY_PROGRAM.test(id) || NAMED_BY_GOOGLE.test(id)) return true;
  if (!NAMED_BY_JAVA.test(id) || PEOPLES_JAVA.test(id)) return false;
  return PEOPLES_FIELDS.every((field) => headers.get(field) === undefined);
}

function isPatch(value: string): boolean {
  let rest = decodeWords(value.slice(0, MAX_SUBJECT_CHARS));
  for (let tags = 0; tags < MAX_SUBJECT_TAGS; tags += 1) {
    const [whole, tag] = SUBJECT_TAG.exec(rest) ?? [];
    if (whole === undefined || tag === undefined) return false;
    if (PATCH_TAG.test(tag)) return true;
    rest = rest.slice(whole.length);
  }
  return false;
}
