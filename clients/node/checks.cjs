// What the suites share: checks that are told one line each, as JSON, and go on after a failure.
"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

const connectionString = process.env.AZURE_STORAGE_CONNECTION_STRING;
const account = process.env.AZURE_STORAGE_ACCOUNT;
const key = process.env.AZURE_STORAGE_KEY;

const checks = [];

function check(name, body) {
  checks.push({ name, body });
}

async function run() {
  for (const { name, body } of checks) {
    let error = null;
    try {
      await body();
    } catch (problem) {
      error = String((problem && problem.stack) || problem).slice(0, 1500) || "failed";
    }
    process.stdout.write(`${JSON.stringify({ name, error })}\n`);
  }
}

function newName() {
  return `c${randomUUID().replaceAll("-", "").slice(0, 20)}`;
}

// The call is refused with this status and code.
async function refused(status, code, call) {
  const problem = await call().then(
    () => null,
    (caught) => caught,
  );
  assert.ok(problem, `it was not refused with ${status} ${code}`);
  const said = problem.code ?? problem.details?.errorCode ?? problem.details?.odataError?.code;
  assert.deepEqual([problem.statusCode, said], [status, code], problem.message);
}

async function all(pages) {
  const found = [];
  for await (const item of pages) found.push(item);
  return found;
}

function inAnHour() {
  return new Date(Date.now() + 3600 * 1000);
}

module.exports = { account, all, assert, check, connectionString, inAnHour, key, newName, refused, run };
