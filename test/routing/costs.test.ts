import { describe, expect, test } from "bun:test";
import { setTimeout as pause } from "node:timers/promises";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { dashboardCaller } from "../support/signed-in.ts";
import { startModelServer, chatCompletion, toolCalls } from "../support/model-server.ts";
import { testApp } from "../support/app.ts";
