import { version } from "../../package.json";

/** The version of the interface, as its schema declares it. */
export const API_VERSION = "0.1.0";

/** The version of this program. */
export const VERSION = version;
