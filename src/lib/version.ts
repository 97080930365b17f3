import { version } from "../../package.json";

/** The version of the HTTP API, as its OpenAPI document declares it. */
export const API_VERSION = "0.1.0";

/** The version of this program. */
export const VERSION = version;
