import {
  Activity,
  BadgeCheck,
  BookOpenText,
  CalendarClock,
  ChartColumn,
  CreditCard,
  FlaskConical,
  Globe,
  Inbox,
  ListChecks,
  type LucideIcon,
  MessagesSquare,
  Plug,
  Server,
  Settings,
  Sparkles,
  Webhook,
} from "lucide-react";

interface Entry {
  to:
    | "/"
    | "/conversations"
    | "/approvals"
    | "/playground"
    | "/test-set"
    | "/inboxes"
    | "/contexts"
    | "/connections"
    | "/schedules"
    | "/recipes"
    | "/domains"
    | "/webhooks"
    | "/usage"
    | "/billing"
    | "/settings"
    | "/server";
  label: string;
  icon: LucideIcon;
  /** Only for who runs the server. */
  admin?: true;
  /** Only where something can be bought. */
  sold?: true;
}

/** The pages in the order in which people need them. */
export const NAVIGATION: { title: string; pages: Entry[] }[] = [
  {
    title: "What happens",
    pages: [
      { to: "/", label: "Activity", icon: Activity },
      { to: "/conversations", label: "Conversations", icon: MessagesSquare },
      { to: "/approvals", label: "Approvals", icon: BadgeCheck },
      { to: "/playground", label: "Playground", icon: FlaskConical },
      { to: "/test-set", label: "Test set", icon: ListChecks },
    ],
  },
  {
    title: "How it works",
    pages: [
      { to: "/inboxes", label: "Inboxes", icon: Inbox },
      { to: "/contexts", label: "Contexts", icon: BookOpenText },
      { to: "/connections", label: "Connections", icon: Plug },
      { to: "/schedules", label: "Schedules", icon: CalendarClock },
      { to: "/recipes", label: "Recipes", icon: Sparkles },
      { to: "/domains", label: "Domains", icon: Globe },
      { to: "/webhooks", label: "Webhooks", icon: Webhook },
    ],
  },
  {
    title: "Your account",
    pages: [
      { to: "/usage", label: "Usage", icon: ChartColumn },
      { to: "/billing", label: "Billing", icon: CreditCard, sold: true },
      { to: "/settings", label: "Settings", icon: Settings },
      { to: "/server", label: "Server", icon: Server, admin: true },
    ],
  },
];
