// What takes minutes or bad luck elsewhere: expiry, refusals, lost answers. No test sleeps.
"use strict";

const assert = require("node:assert/strict");
const { after, afterEach, before, beforeEach, test } = require("node:test");
const { BlobServiceClient } = require("@azure/storage-blob");
const { QueueServiceClient } = require("@azure/storage-queue");
const { Kyanite } = require("./kyanite.cjs");

const WITHOUT_PAUSES = { retryOptions: { maxTries: 4, retryDelayInMs: 1, maxRetryDelayInMs: 1 } };

let kyanite, account, container;

before(async () => {
  kyanite = await Kyanite.start();
});

after(() => kyanite?.stop());

beforeEach(async () => {
  account = await kyanite.freshAccount();
  const blobs = BlobServiceClient.fromConnectionString(account.connection_string, WITHOUT_PAUSES);
  container = blobs.getContainerClient("results");
  await container.create();
});

afterEach(() => kyanite.clearFaults());

function upload(name, text) {
  const onlyNew = { conditions: { ifNoneMatch: "*" } };
  return container.getBlockBlobClient(name).upload(text, Buffer.byteLength(text), onlyNew);
}

test("a lease expires when the clock moves", async () => {
  await upload("leader", "");
  const lease = () => container.getBlobClient("leader").getBlobLeaseClient().acquireLease(30);
  await lease();
  await assert.rejects(lease, { code: "LeaseAlreadyPresent" });
  await kyanite.advance(30);
  await lease();
});

test("a message reappears when the clock moves", async () => {
  const queue = QueueServiceClient.fromConnectionString(account.connection_string).getQueueClient("jobs");
  await queue.create();
  await queue.sendMessage("paint the shed");
  const receive = async () => (await queue.receiveMessages({ visibilityTimeout: 60 })).receivedMessageItems;
  assert.equal((await receive()).length, 1);
  assert.equal((await receive()).length, 0);
  await kyanite.advance(60);
  assert.equal((await receive())[0].messageText, "paint the shed");
});

test("a busy server is tried again", async () => {
  await kyanite.addFault({ account: account.name, operation: "Put Blob", times: 2, status: 503 });
  await upload("shed", "painted");
  const attempts = await kyanite.requests({ account: account.name, operation: "Put Blob" });
  assert.deepEqual(
    attempts.map((each) => each.status),
    [503, 503, 201],
  );
});

test("a retry meets its own write when the answer was lost", async () => {
  await kyanite.addFault({
    account: account.name,
    operation: "Put Blob",
    times: 1,
    drop: true,
    after_commit: true,
  });
  await assert.rejects(() => upload("shed", "painted"), { code: "BlobAlreadyExists" });
  const content = await container.getBlobClient("shed").downloadToBuffer();
  assert.equal(content.toString(), "painted");
});

test("an operation that does not exist is refused with a sentence", async () => {
  await assert.rejects(() => kyanite.addFault({ operation: "Put Blop", status: 503 }), {
    message: "There is no operation 'Put Blop'. Did you mean 'Put Blob'?",
  });
});
