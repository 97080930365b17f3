/** The reason of a message that its owner has cancelled. */
export const CANCELLED_REASON = "cancelled";
