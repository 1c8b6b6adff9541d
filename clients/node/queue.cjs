// @azure/storage-queue: queues, and messages from put to delete.
"use strict";

const { QueueServiceClient, QueueSASPermissions, QueueClient } = require("@azure/storage-queue");
const { all, assert, check, connectionString, inAnHour, newName, refused, run } = require("./checks.cjs");

const options = { retryOptions: { maxTries: 1 } };
const service = QueueServiceClient.fromConnectionString(connectionString, options);
const queue = service.getQueueClient(newName());

check("a queue is made, described and listed", async () => {
  await queue.create({ metadata: { a: "1" } });
  await queue.create({ metadata: { a: "1" } });
  await refused(409, "QueueAlreadyExists", () => queue.create({ metadata: { a: "2" } }));
  await queue.setMetadata({ b: "2" });
  const found = await queue.getProperties();
  assert.deepEqual([found.metadata, found.approximateMessagesCount], [{ b: "2" }, 0]);
  const listed = await all(service.listQueues({ prefix: queue.name, includeMetadata: true }));
  assert.deepEqual(listed.map((item) => [item.name, item.metadata]), [[queue.name, { b: "2" }]]);
});

check("messages are put, peeked at, got and deleted", async () => {
  for (const text of ["one", "<two & ä 日本>", "three"]) await queue.sendMessage(text);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 3);
  const peeked = (await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems;
  assert.deepEqual(peeked.map((message) => message.messageText), ["one", "<two & ä 日本>", "three"]);
  const got = (await queue.receiveMessages({ numberOfMessages: 2, visibilityTimeout: 30 })).receivedMessageItems;
  assert.deepEqual(got.map((message) => [message.messageText, message.dequeueCount]), [["one", 1], ["<two & ä 日本>", 1]]);
  assert.equal((await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.length, 1);
  for (const message of got) await queue.deleteMessage(message.messageId, message.popReceipt);
  await refused(404, "MessageNotFound", () => queue.deleteMessage(got[0].messageId, got[0].popReceipt));
});

check("a message is changed and comes back at once", async () => {
  const [message] = (await queue.receiveMessages({ visibilityTimeout: 30 })).receivedMessageItems;
  const updated = await queue.updateMessage(message.messageId, message.popReceipt, "changed", 0);
  await refused(404, "MessageNotFound", () => queue.deleteMessage(message.messageId, message.popReceipt));
  const [again] = (await queue.receiveMessages({ visibilityTimeout: 1 })).receivedMessageItems;
  assert.deepEqual([again.messageText, again.dequeueCount], ["changed", 2]);
  assert.notEqual(updated.popReceipt, message.popReceipt);
});

check("a message may wait and may expire", async () => {
  await queue.clearMessages();
  await queue.sendMessage("later", { visibilityTimeout: 60, messageTimeToLive: 120 });
  assert.equal((await queue.receiveMessages()).receivedMessageItems.length, 0);
  await queue.sendMessage("short", { messageTimeToLive: 1 });
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal((await queue.peekMessages()).peekedMessageItems.length, 0);
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
});

check("a token allows to add, and not to read", async () => {
  const url = queue.generateSasUrl({ permissions: QueueSASPermissions.parse("a"), expiresOn: inAnHour() });
  const adder = new QueueClient(url, undefined, options);
  await adder.sendMessage("added");
  await refused(403, "AuthorizationPermissionMismatch", () => adder.peekMessages());
});

check("stored policies", async () => {
  await queue.setAccessPolicy([{ id: "p", accessPolicy: { permissions: "r", expiresOn: inAnHour(), startsOn: new Date(0) } }]);
  const found = await queue.getAccessPolicy();
  assert.equal(found.signedIdentifiers[0].accessPolicy.permissions, "r");
});

check("service properties", async () => {
  const found = await service.getProperties();
  await service.setProperties(found);
  assert.ok(found.hourMetrics);
});

check("a queue goes with all that is in it", async () => {
  await queue.delete();
  await refused(404, "QueueNotFound", () => queue.getProperties());
});

run();
