// A Kyanite server for tests: its accounts, its clock, its faults and the requests that it has received.
"use strict";

const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");

const PORTS = ["blob", "queue", "table", "file", "smb", "admin"];

class Kyanite {
  // Starts a server in memory, on free ports of this machine.
  static async start(program = process.env.KYANITE ?? "kyanite") {
    const options = PORTS.flatMap((name) => [`--${name}-port`, "0"]);
    options.push("--console-port", "none", "--log-level", "warning");
    const server = spawn(program, ["serve", "--testing", "--in-memory", ...options], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const failed = new Promise((_, reject) => {
      server.once("error", reject);
      server.once("exit", (code) => reject(new Error(`the server ended with exit code ${code}`)));
    });
    failed.catch(() => {});
    return new Kyanite(server, await Promise.race([readyLine(server.stdout), failed]));
  }

  constructor(server, endpoints) {
    this.server = server;
    this.endpoints = endpoints;
  }

  async stop() {
    if (this.server.exitCode !== null || this.server.signalCode !== null) return;
    const ended = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill("SIGTERM");
    await ended;
  }

  // A new account without data: { name, key, connection_string, endpoints }.
  freshAccount() {
    return this.#call("POST", "accounts");
  }

  // Leases, messages, tokens and retention end as if so many seconds had passed.
  async advance(seconds) {
    return new Date((await this.#call("POST", "clock", { advance_seconds: seconds })).now);
  }

  async now() {
    return new Date((await this.#call("GET", "clock")).now);
  }

  // Such as { operation: "Put Blob", times: 2, status: 503 }.
  addFault(fault) {
    return this.#call("POST", "faults", fault);
  }

  clearFaults() {
    return this.#call("DELETE", "faults");
  }

  // Such as { account, operation: "Put Blob" }.
  async requests(filters = {}) {
    return (await this.#call("GET", `requests?${new URLSearchParams(filters)}`)).requests;
  }

  async #call(method, path, body) {
    const answer = await fetch(`${this.endpoints.admin}/testing/${path}`, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    const result = text ? JSON.parse(text) : undefined;
    if (!answer.ok) throw new Error(result?.error ?? `${method} ${path}: ${answer.status}`);
    return result;
  }
}

async function readyLine(output) {
  for await (const line of createInterface({ input: output })) {
    if (line.startsWith("ready ")) {
      output.resume();
      return JSON.parse(line.slice("ready ".length));
    }
  }
  throw new Error("the server ended before it was ready");
}

module.exports = { Kyanite };
