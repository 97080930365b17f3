/** The reason of a message whose owner wanted no more of it. */
export const CANCELLED_REASON = "cancelled";
