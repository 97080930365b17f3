import type { Static } from "@sinclair/typebox";
import type {
  ApiKeyShape,
  MeShape,
  NewApiKeyShape,
  SecurityEventShape,
  SessionShape,
} from "../../resources/accounts/shapes.ts";
import type {
  AdminUserShape,
  BackupsShape,
  DaysShape,
  ExaminationShape,
  JobShape,
  OutgoingMailDetailShape,
  OutgoingMailShape,
  OverviewShape,
} from "../../operation/admin/shapes.ts";
import type { UsageShape } from "../../resources/billing/shapes.ts";
import type {
  ConnectionShape,
  ConnectionTestShape,
  ToolProgramShape,
} from "../../resources/connections/shapes.ts";
import type {
  ContextShape,
  ContextVersionCardShape,
  ContextVersionShape,
} from "../../resources/contexts/shapes.ts";
import type { ConversationDetailShape, ConversationShape } from "../../resources/conversations/shapes.ts";
import type { CustomDomainShape, ServiceDnsShape } from "../../resources/domains/shapes.ts";
import type { InboxPatch } from "../../resources/inboxes/body-shapes.ts";
import type {
  InboxActivityShape,
  InboxShape,
  InboxTestShape,
  RulesTriedShape,
} from "../../resources/inboxes/shapes.ts";
import type {
  ActivityShape,
  AttachmentShape,
  RunShape,
  StoryShape,
} from "../../resources/messages/shapes.ts";
import type { AppliedRecipeShape, RecipeShape } from "../../resources/recipes/shapes.ts";
import type { ApprovalShape } from "../../resources/approvals/shapes.ts";
import type { ReplayCardShape, ReplayShape } from "../../resources/replays/shapes.ts";
import type { StarredShape, TestRunCardShape, TestRunShape } from "../../resources/test-runs/shapes.ts";
import type { ScheduleShape } from "../../resources/schedules/shapes.ts";
import type { ServerShape } from "../../resources/accounts/setup-shapes.ts";
import type {
  CountsShape,
  DeliveryDetailShape,
  DeliveryShape,
  EndpointShape,
  NewEndpointShape,
  TestDeliveryShape,
} from "../../resources/webhooks/shapes.ts";

/** The answers of the public interface, by the schemas that its document is made of. */
export type Me = Static<typeof MeShape>;
export type ApiKey = Static<typeof ApiKeyShape>;
export type NewApiKey = Static<typeof NewApiKeyShape>;
export type SecurityEvent = Static<typeof SecurityEventShape>;
export type Usage = Static<typeof UsageShape>;
export type Connection = Static<typeof ConnectionShape>;
export type ConnectionTest = Static<typeof ConnectionTestShape>;
export type ToolProgram = Static<typeof ToolProgramShape>;
export type Context = Static<typeof ContextShape>;
export type ContextVersionCard = Static<typeof ContextVersionCardShape>;
export type ContextVersion = Static<typeof ContextVersionShape>;
export type Conversation = Static<typeof ConversationShape>;
export type ConversationDetail = Static<typeof ConversationDetailShape>;
export type CustomDomain = Static<typeof CustomDomainShape>;
export type ServiceDns = Static<typeof ServiceDnsShape>;
export type Inbox = Static<typeof InboxShape>;
export type InboxActivity = Static<typeof InboxActivityShape>;
export type RulesTried = Static<typeof RulesTriedShape>;
export type InboxTest = Static<typeof InboxTestShape>;
export type Activity = Static<typeof ActivityShape>;
export type Attachment = Static<typeof AttachmentShape>;
export type Replay = Static<typeof ReplayShape>;
export type ReplayCard = Static<typeof ReplayCardShape>;
export type RoutingResult = Static<typeof RunShape>;
export type Approval = Static<typeof ApprovalShape>;
export type StarredMessage = Static<typeof StarredShape>;
export type TestRunCard = Static<typeof TestRunCardShape>;
export type TestRun = Static<typeof TestRunShape>;
export type Schedule = Static<typeof ScheduleShape>;
export type Recipe = Static<typeof RecipeShape>;
export type AppliedRecipe = Static<typeof AppliedRecipeShape>;
export type Endpoint = Static<typeof EndpointShape>;
export type NewEndpoint = Static<typeof NewEndpointShape>;
export type Delivery = Static<typeof DeliveryShape>;
export type DeliveryDetail = Static<typeof DeliveryDetailShape>;
export type WebhookCounts = Static<typeof CountsShape>;
export type TestDelivery = Static<typeof TestDeliveryShape>;
export type ServerFacts = Static<typeof ServerShape>;
export type Session = Static<typeof SessionShape>;
export type Story = Static<typeof StoryShape>;
export type AdminUser = Static<typeof AdminUserShape>;
export type Backups = Static<typeof BackupsShape>;
export type ServerDays = Static<typeof DaysShape>;
export type Examination = Static<typeof ExaminationShape>;
export type Job = Static<typeof JobShape>;
export type OutgoingMail = Static<typeof OutgoingMailShape>;
export type OutgoingMailDetail = Static<typeof OutgoingMailDetailShape>;
export type Overview = Static<typeof OverviewShape>;
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** A change of an inbox; members that are absent stay as they are. */
export type InboxChange = InboxPatch;
