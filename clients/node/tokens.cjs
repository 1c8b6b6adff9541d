// @azure/identity with the libraries of all four services: no keys, but tokens of the built-in issuer.
"use strict";

const { randomUUID } = require("node:crypto");
const {
  ClientSecretCredential,
  DefaultAzureCredential,
  EnvironmentCredential,
  ManagedIdentityCredential,
  WorkloadIdentityCredential,
} = require("@azure/identity");
const { BlobServiceClient } = require("@azure/storage-blob");
const { QueueServiceClient } = require("@azure/storage-queue");
const { TableClient } = require("@azure/data-tables");
const { ShareServiceClient } = require("@azure/storage-file-share");
const { all, assert, check, newName, run } = require("./checks.cjs");

const { AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET } = process.env;
const { BLOB_URL, QUEUE_URL, TABLE_URL, FILE_URL } = process.env;
// Without it the library asks Microsoft's cloud whether it knows the authority.
const offline = { disableInstanceDiscovery: true, authorityHost: process.env.AZURE_AUTHORITY_HOST };
const once = { retryOptions: { maxTries: 1, maxRetries: 0 } };
const storage = "https://storage.azure.com/.default";

const credentials = {
  "a secret": () => new ClientSecretCredential(AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, offline),
  "the environment": () => new EnvironmentCredential(offline),
  "the default": () => new DefaultAzureCredential(offline),
  "a federated token": () => new WorkloadIdentityCredential(offline),
  "a managed identity": () => new ManagedIdentityCredential(),
};

for (const [name, make] of Object.entries(credentials)) {
  check(`${name}: blobs`, async () => {
    const container = new BlobServiceClient(BLOB_URL, make(), once).getContainerClient(newName());
    await container.create();
    const data = Buffer.from("content");
    await container.getBlockBlobClient("a").upload(data, data.length);
    assert.deepEqual(await container.getBlobClient("a").downloadToBuffer(), data);
    await container.delete();
  });
}

check("a queue", async () => {
  const queue = new QueueServiceClient(QUEUE_URL, credentials["a secret"](), once).getQueueClient(newName());
  await queue.create();
  await queue.sendMessage("content");
  const { receivedMessageItems } = await queue.receiveMessages();
  assert.deepEqual(
    receivedMessageItems.map((message) => message.messageText),
    ["content"],
  );
  await queue.delete();
});

check("a table", async () => {
  const table = new TableClient(TABLE_URL, newName(), credentials["a secret"](), once);
  await table.createTable();
  await table.createEntity({ partitionKey: "p", rowKey: "r", value: 1 });
  assert.equal((await table.getEntity("p", "r")).value, 1);
  await table.deleteTable();
});

check("a file", async () => {
  const options = { ...once, fileRequestIntent: "backup" };
  const share = new ShareServiceClient(FILE_URL, credentials["a secret"](), options).getShareClient(newName());
  await share.create();
  const file = share.rootDirectoryClient.getFileClient("a");
  await file.uploadData(Buffer.from("content"));
  assert.deepEqual(await file.downloadToBuffer(), Buffer.from("content"));
  const names = (await all(share.rootDirectoryClient.listFilesAndDirectories())).map((item) => item.name);
  assert.deepEqual(names, ["a"]);
  await share.delete();
});

check("a wrong secret is an error of authentication", async () => {
  const credential = new ClientSecretCredential(AZURE_TENANT_ID, AZURE_CLIENT_ID, "wrong", offline);
  await assert.rejects(credential.getToken(storage), /invalid_client.*AADSTS7000215/);
});

check("an unknown client is one too", async () => {
  const credential = new ClientSecretCredential(AZURE_TENANT_ID, randomUUID(), AZURE_CLIENT_SECRET, offline);
  await assert.rejects(credential.getToken(storage), /unauthorized_client.*AADSTS700016/);
});

run();
