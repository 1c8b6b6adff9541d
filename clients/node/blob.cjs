// @azure/storage-blob: uploads and downloads, conditions, leases, snapshots, copies, the three kinds of blob, tiers,
// tags, batches, tokens.
"use strict";

const { createHash, randomBytes } = require("node:crypto");
const { mkdtempSync, readFileSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { dirname, join } = require("node:path");
const { Readable } = require("node:stream");
const {
  BlobServiceClient,
  BlobSASPermissions,
  BlobClient,
  ContainerClient,
  ContainerSASPermissions,
  StorageSharedKeyCredential,
  AccountSASPermissions,
  generateBlobSASQueryParameters,
} = require("@azure/storage-blob");
const { account, all, assert, check, connectionString, inAnHour, key, newName, refused, run } = require("./checks.cjs");

const service = BlobServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } });
const credential = new StorageSharedKeyCredential(account, key);
const container = service.getContainerClient(newName());

function signed(blob, permissions = "r") {
  const terms = {
    containerName: blob.containerName,
    blobName: blob.name,
    permissions: BlobSASPermissions.parse(permissions),
    expiresOn: inAnHour(),
  };
  return `${blob.url}?${generateBlobSASQueryParameters(terms, credential)}`;
}

check("a container is made, described and listed", async () => {
  await container.create({ metadata: { CamelCase: "kept" } });
  const found = await container.getProperties();
  assert.deepEqual(found.metadata, { camelcase: "kept" });
  const names = (await all(service.listContainers({ prefix: container.containerName }))).map((item) => item.name);
  assert.deepEqual(names, [container.containerName]);
  await refused(409, "ContainerAlreadyExists", () => container.create());
});

check("a blob is uploaded and downloaded", async () => {
  const blob = container.getBlockBlobClient("plain ä/日本語 +%#&.txt");
  const data = Buffer.from("some data");
  await blob.upload(data, data.length, { blobHTTPHeaders: { blobContentType: "text/x" }, metadata: { a: "1" } });
  assert.deepEqual(await blob.downloadToBuffer(), data);
  assert.deepEqual(await blob.downloadToBuffer(5, 4), Buffer.from("data"));
  const found = await blob.getProperties();
  assert.deepEqual([found.contentType, found.metadata, found.contentLength], ["text/x", { a: "1" }, 9]);
  assert.deepEqual(Buffer.from(found.contentMD5), createHash("md5").update(data).digest());
});

check("a large blob goes in blocks and comes back in ranges", async () => {
  const blob = container.getBlockBlobClient("large");
  const data = randomBytes(20 * 1024 * 1024 + 17);
  await blob.uploadData(data, { blockSize: 4 * 1024 * 1024, maxSingleShotSize: 1024, concurrency: 4 });
  assert.ok(data.equals(await blob.downloadToBuffer(0, undefined, { blockSize: 3 * 1024 * 1024, concurrency: 4 })));
  const list = await blob.getBlockList("committed");
  assert.equal(list.committedBlocks.length, 6);
});

check("blobs are listed, flat and by folders", async () => {
  const own = service.getContainerClient(newName());
  await own.create();
  for (const name of ["a", "b/1", "b/2", "c/d/3"]) await own.getBlockBlobClient(name).upload("x", 1);
  const flat = [];
  for await (const page of own.listBlobsFlat().byPage({ maxPageSize: 3 })) flat.push(page.segment.blobItems.length);
  assert.deepEqual(flat, [3, 1]);
  const found = (await all(own.listBlobsByHierarchy("/"))).map((item) => `${item.kind} ${item.name}`);
  assert.deepEqual(found.sort(), ["blob a", "prefix b/", "prefix c/"]);
  await own.delete();
});

check("conditions hold or refuse", async () => {
  const blob = container.getBlockBlobClient("conditions");
  const first = await blob.upload("1", 1);
  const second = await blob.upload("2", 1, { conditions: { ifMatch: first.etag } });
  await refused(412, "ConditionNotMet", () => blob.upload("3", 1, { conditions: { ifMatch: first.etag } }));
  await refused(409, "BlobAlreadyExists", () => blob.upload("3", 1, { conditions: { ifNoneMatch: "*" } }));
  await refused(304, "ConditionNotMet", () => blob.download(0, undefined, { conditions: { ifNoneMatch: second.etag } }));
  assert.equal((await blob.downloadToBuffer()).toString(), "2");
});

check("a lease keeps others away", async () => {
  const blob = container.getBlockBlobClient("leased");
  await blob.upload("1", 1);
  const lease = blob.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(15);
  await refused(412, "LeaseIdMissing", () => blob.upload("2", 1));
  await refused(409, "LeaseAlreadyPresent", () => blob.getBlobLeaseClient().acquireLease(15));
  await blob.upload("2", 1, { conditions: { leaseId } });
  await lease.renewLease();
  await lease.changeLease("11111111-1111-4111-8111-111111111111");
  await lease.releaseLease();
  await lease.acquireLease(-1);
  const broken = await lease.breakLease(0);
  assert.equal(broken.leaseTime, 0);
  await blob.upload("3", 1);
});

check("a container can be leased too", async () => {
  const own = service.getContainerClient(newName());
  await own.create();
  const lease = own.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(-1);
  await refused(412, "LeaseIdMissing", () => own.delete());
  await own.delete({ conditions: { leaseId } });
});

check("snapshots keep what was", async () => {
  const blob = container.getBlockBlobClient("snapshots");
  await blob.upload("before", 6);
  const { snapshot } = await blob.createSnapshot();
  await blob.upload("after", 5);
  assert.equal((await blob.withSnapshot(snapshot).downloadToBuffer()).toString(), "before");
  await refused(409, "SnapshotsPresent", () => blob.delete());
  const listed = await all(container.listBlobsFlat({ includeSnapshots: true, prefix: "snapshots" }));
  assert.deepEqual(listed.map((item) => item.snapshot ?? ""), [snapshot, ""]);
  await blob.delete({ deleteSnapshots: "include" });
});

check("metadata and headers are set", async () => {
  const blob = container.getBlockBlobClient("described");
  await blob.upload("x", 1);
  await blob.setMetadata({ one: "1", two: "2" });
  await blob.setHTTPHeaders({ blobContentType: "image/x", blobContentLanguage: "kl" });
  const found = await blob.getProperties();
  assert.deepEqual([found.metadata, found.contentType, found.contentLanguage], [{ one: "1", two: "2" }, "image/x", "kl"]);
});

check("copies: asynchronous, synchronous, and put from a URL", async () => {
  const source = container.getBlockBlobClient("source");
  await source.upload("copied", 6, { metadata: { of: "mine" } });
  const poller = await container.getBlockBlobClient("copy1").beginCopyFromURL(source.url);
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  await container.getBlockBlobClient("copy2").syncCopyFromURL(signed(source));
  await container.getBlockBlobClient("copy3").syncUploadFromURL(signed(source));
  for (const name of ["copy1", "copy2", "copy3"]) {
    const copy = container.getBlockBlobClient(name);
    assert.equal((await copy.downloadToBuffer()).toString(), "copied");
    assert.deepEqual((await copy.getProperties()).metadata, { of: "mine" });
  }
  await refused(401, "CannotVerifyCopySource", () => container.getBlockBlobClient("copy4").syncCopyFromURL(source.url));
});

check("blocks are staged, also from a URL, and committed", async () => {
  const source = container.getBlockBlobClient("source");
  const blob = container.getBlockBlobClient("blocks");
  const ids = ["1", "2", "3"].map((name) => Buffer.from(name).toString("base64"));
  await blob.stageBlock(ids[0], "one ", 4);
  await blob.stageBlockFromURL(ids[1], signed(source), 0, 4);
  await blob.stageBlock(ids[2], "dropped", 7);
  assert.equal((await blob.getBlockList("uncommitted")).uncommittedBlocks.length, 3);
  await blob.commitBlockList(ids.slice(0, 2), { metadata: { made: "of blocks" } });
  assert.equal((await blob.downloadToBuffer()).toString(), "one copi");
});

check("append blobs grow at their end", async () => {
  const blob = container.getAppendBlobClient("log");
  const source = container.getBlockBlobClient("source");
  await blob.create();
  await blob.appendBlock("first ", 6);
  const second = await blob.appendBlock("second ", 7, { conditions: { appendPosition: 6 } });
  assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["6", 2]);
  await refused(412, "AppendPositionConditionNotMet", () => blob.appendBlock("x", 1, { conditions: { appendPosition: 6 } }));
  await blob.appendBlockFromURL(signed(source), 0, 6);
  assert.equal((await blob.downloadToBuffer()).toString(), "first second copied");
});

check("a sealed append blob takes no more", async () => {
  const blob = container.getAppendBlobClient("sealed");
  await blob.create();
  await blob.appendBlock("all", 3);
  assert.equal((await blob.seal({ conditions: { appendPosition: 3 } })).isSealed, true);
  await refused(409, "BlobIsSealed", () => blob.appendBlock("more", 4));
  const [listed] = await all(container.listBlobsFlat({ prefix: "sealed" }));
  assert.equal(listed.properties.isSealed, true);
});

check("tiers are set, and the archive keeps its blobs to itself", async () => {
  const blob = container.getBlockBlobClient("tiered");
  await blob.upload("data", 4, { tier: "Cool" });
  assert.equal((await blob.getProperties()).accessTier, "Cool");
  await blob.setAccessTier("Archive");
  await refused(409, "BlobArchived", () => blob.download());
  await blob.setAccessTier("Hot", { rehydratePriority: "High" });
  const found = await blob.getProperties();
  assert.deepEqual([found.accessTier, found.archiveStatus], ["Archive", "rehydrate-pending-to-hot"]);
});

check("batches set tiers and delete", async () => {
  const names = ["batch/a", "batch/b c", "batch/ü"];
  const blobs = names.map((name) => container.getBlockBlobClient(name));
  for (const blob of blobs) await blob.upload("data", 4);
  const tiered = await service.getBlobBatchClient().setBlobsAccessTier(blobs, "Cold");
  assert.equal(tiered.subResponsesSucceededCount, 3);
  assert.equal((await blobs[2].getProperties()).accessTier, "Cold");
  const gone = [...blobs, container.getBlockBlobClient("batch/none")];
  const deleted = await container.getBlobBatchClient().deleteBlobs(gone);
  assert.deepEqual([deleted.subResponsesSucceededCount, deleted.subResponsesFailedCount], [3, 1]);
  assert.equal(deleted.subResponses[3].errorCode, "BlobNotFound");
  assert.deepEqual(await all(container.listBlobsFlat({ prefix: "batch/" })), []);
});

check("page blobs are written anywhere", async () => {
  const blob = container.getPageBlobClient("disk");
  const source = container.getBlockBlobClient("pages");
  const page = randomBytes(512);
  await source.upload(page, 512);
  await blob.create(4096);
  await blob.uploadPages(page, 512, 512);
  const { snapshot } = await blob.createSnapshot();
  await blob.uploadPagesFromURL(signed(source), 0, 2048, 512);
  await blob.clearPages(512, 512);
  const ranges = await blob.getPageRanges(0, 4096);
  assert.deepEqual(ranges.pageRange, [{ offset: 2048, count: 511 }]);
  const changes = await blob.getPageRangesDiff(0, 4096, snapshot);
  assert.deepEqual([changes.pageRange, changes.clearRange], [[{ offset: 2048, count: 511 }], [{ offset: 512, count: 511 }]]);
  await blob.resize(8192);
  await blob.updateSequenceNumber("update", 7);
  const found = await blob.getProperties();
  assert.deepEqual([found.contentLength, found.blobSequenceNumber], [8192, 7]);
});

check("streams and files go up and come down", async () => {
  const data = randomBytes(5 * 1024 * 1024 + 3);
  const streamed = container.getBlockBlobClient("streamed");
  await streamed.uploadStream(Readable.from([data.subarray(0, 100), data.subarray(100)]), 1024 * 1024, 4);
  const file = join(mkdtempSync(join(tmpdir(), "blob-")), "back");
  await streamed.downloadToFile(file);
  assert.ok(data.equals(readFileSync(file)));
  const filed = container.getBlockBlobClient("filed");
  await filed.uploadFile(file, { blockSize: 1024 * 1024, maxSingleShotSize: 1024, concurrency: 3 });
  assert.ok(data.equals(await filed.downloadToBuffer()));
  rmSync(dirname(file), { recursive: true });
});

check("tags are set, searched for and compared", async () => {
  const blob = container.getBlockBlobClient("tagged");
  await blob.upload("x", 1, { tags: { state: "new", "a b": "x y/z" } });
  assert.deepEqual((await blob.getTags()).tags, { state: "new", "a b": "x y/z" });
  await blob.setTags({ state: "done", number: "7" }, { conditions: { tagConditions: "state = 'new'" } });
  await refused(412, "ConditionNotMet", () => blob.upload("y", 1, { conditions: { tagConditions: "state = 'new'" } }));
  const everywhere = `@container = '${container.containerName}' AND state >= 'd' AND number = '7'`;
  assert.deepEqual((await all(service.findBlobsByTags(everywhere))).map((item) => item.name), ["tagged"]);
  assert.deepEqual((await all(container.findBlobsByTags("state = 'new'"))), []);
  await refused(400, "InvalidTag", () => blob.setTags({ "a!": "1" }));
  const copy = container.getBlockBlobClient("tagged copy");
  await copy.syncCopyFromURL(signed(blob, "rt"), { copySourceTags: "COPY" });
  assert.deepEqual((await copy.getTags()).tags, { state: "done", number: "7" });
});

check("page ranges and their differences come in pages", async () => {
  const blob = container.getPageBlobClient("paged");
  await blob.create(8192);
  await blob.uploadPages(Buffer.alloc(1024, 1), 0, 1024);
  const { snapshot } = await blob.createSnapshot();
  await blob.uploadPages(Buffer.alloc(512, 2), 4096, 512);
  await blob.clearPages(0, 512);
  const pages = [];
  for await (const page of blob.listPageRanges(0, 8192).byPage({ maxPageSize: 1 })) pages.push(page.pageRange);
  assert.deepEqual(pages, [[{ start: 512, end: 1023 }], [{ start: 4096, end: 4607 }]]);
  const changes = [];
  for await (const page of blob.listPageRangesDiff(0, 8192, snapshot).byPage({ maxPageSize: 1 })) {
    changes.push([page.pageRange, page.clearRange]);
  }
  assert.deepEqual(changes, [[[], [{ start: 0, end: 511 }]], [[{ start: 4096, end: 4607 }], []]]);
  await refused(416, "InvalidRange", () => blob.getPageRanges(8192, 512));
});

check("any name goes through addresses, tokens and batches", async () => {
  const names = ["sp ace", "100%", "a+b", "a#b", "a?b", "😀", "dot.", "a/b//c", 'q"q', "q'q", "x&y", "<x>"];
  const blobs = names.map((name) => container.getBlockBlobClient(`names/${name}`));
  for (const blob of blobs) {
    await blob.upload(blob.name, Buffer.byteLength(blob.name));
    const reader = new BlobClient(signed(blob), undefined, { retryOptions: { maxTries: 1 } });
    assert.equal((await reader.downloadToBuffer()).toString(), blob.name);
  }
  const listed = (await all(container.listBlobsFlat({ prefix: "names/" }))).map((item) => item.name);
  assert.deepEqual(listed.sort(), blobs.map((blob) => blob.name).sort());
  assert.equal((await container.getBlobBatchClient().setBlobsAccessTier(blobs, "Cool")).subResponsesFailedCount, 0);
  assert.equal((await service.getBlobBatchClient().deleteBlobs(blobs)).subResponsesFailedCount, 0);
});

check("what is not there says so", async () => {
  const blob = container.getBlockBlobClient("described");
  const sha = createHash("sha256").update(Buffer.alloc(32)).digest("base64");
  const customerProvidedKey = { encryptionKey: Buffer.alloc(32).toString("base64"), encryptionKeySha256: sha };
  await refused(501, "NotImplemented", () => blob.query("select * from BlobStorage"));
  await refused(501, "NotImplemented", () => container.getPageBlobClient("copy").startCopyIncremental(`${blob.url}?snapshot=x`));
  await refused(501, "NotImplemented", () => blob.upload("x", 1, { encryptionScope: "scope" }));
  if (service.url.startsWith("https:")) {
    await refused(501, "NotImplemented", () => blob.upload("x", 1, { customerProvidedKey }));
  }
  const immutable = "ContainerImmutableStorageWithVersioningNotEnabled";
  await refused(409, immutable, () => blob.setLegalHold(true));
});

check("tokens allow exactly what they say", async () => {
  const blob = container.getBlockBlobClient("shared");
  await blob.upload("shared", 6);
  const reader = new BlobClient(signed(blob, "r"), undefined, { retryOptions: { maxTries: 1 } });
  assert.equal((await reader.downloadToBuffer()).toString(), "shared");
  await refused(403, "AuthorizationPermissionMismatch", () => reader.delete());
  const url = await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("l"), expiresOn: inAnHour() });
  const lister = new ContainerClient(url, undefined, { retryOptions: { maxTries: 1 } });
  assert.ok((await all(lister.listBlobsFlat())).length > 5);
  await refused(403, "AuthorizationPermissionMismatch", () => lister.getBlobClient("shared").download());
  const everywhere = service.generateAccountSasUrl(inAnHour(), AccountSASPermissions.parse("rl"), "sco");
  assert.ok((await all(new BlobServiceClient(everywhere).listContainers())).length > 0);
  const forged = new URL(signed(blob));
  forged.searchParams.set("sig", Buffer.alloc(32).toString("base64"));
  await refused(403, "AuthenticationFailed", () => new BlobClient(forged.toString()).download());
});

check("stored policies and public access", async () => {
  const policy = { id: "p", accessPolicy: { permissions: "r", expiresOn: inAnHour(), startsOn: new Date(0) } };
  await container.setAccessPolicy("blob", [policy]);
  const found = await container.getAccessPolicy();
  assert.deepEqual([found.blobPublicAccess, found.signedIdentifiers[0].accessPolicy.permissions], ["blob", "r"]);
  const anyone = new BlobClient(container.getBlobClient("shared").url);
  assert.equal((await anyone.downloadToBuffer()).toString(), "shared");
  await container.setAccessPolicy();
});

check("service properties", async () => {
  const before = await service.getProperties();
  const rule = { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 };
  await service.setProperties({ ...before, cors: [rule] });
  assert.deepEqual((await service.getProperties()).cors, [rule]);
  await service.setProperties({ ...before, cors: [] });
  assert.equal((await service.getAccountInfo()).accountKind, "StorageV2");
});

check("a container goes with all that is in it", async () => {
  await container.delete();
  await refused(404, "ContainerNotFound", () => container.getProperties());
});

run();
