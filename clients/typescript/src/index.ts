/** Client of the HTTP API of MindBus: every path, its parameters, bodies and answers are typed. */

import createClient, { type Client, type Middleware } from "openapi-fetch";

import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

/** An object of the API by its name in the reference, such as `Schema<"Kem">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** The API has refused a request, or could not answer it. */
export class MindBusError extends Error {
  readonly status: number;
  readonly problem: Schema<"Problem"> | undefined;

  constructor(status: number, problem: Schema<"Problem"> | undefined) {
    super(problem?.detail ?? `HTTP status ${status}`);
    this.name = "MindBusError";
    this.status = status;
    this.problem = problem;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.problem?.retryable ?? this.status >= 500;
  }
}

const throwProblems: Middleware = {
  async onResponse({ response }) {
    if (response.ok) return;
    const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json");
    throw new MindBusError(response.status, isProblem ? await response.clone().json() : undefined);
  },
};

/** A client of the gateway at `url`, as whoever has the `token`; its methods throw `MindBusError`. */
export function connect(url: string, token?: string): Client<paths> {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const client = createClient<paths>({ baseUrl: url, headers });
  client.use(throwProblems);
  return client;
}
