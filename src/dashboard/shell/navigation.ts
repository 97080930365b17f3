import { Activity, type LucideIcon } from "lucide-react";

interface Entry {
  to: "/";
  label: string;
  icon: LucideIcon;
}

/** The pages in the order in which people need them. */
export const NAVIGATION: { title?: string; pages: Entry[] }[] = [
  { pages: [{ to: "/", label: "Activity", icon: Activity }] },
];
