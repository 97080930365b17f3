import { version } from "../../package.json";

/** Of the interface, as its schema declares it. */
export const API_VERSION = "0.1.0";

/** Of this program. */
export const VERSION = version;
