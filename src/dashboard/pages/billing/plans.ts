export const PLANS = { free: "Free", pro: "Pro", team: "Team" } as const;
