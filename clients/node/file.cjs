// @azure/storage-file-share: shares, directories, files, ranges, leases, snapshots, copies, links.
"use strict";

const { randomBytes } = require("node:crypto");
const {
  FileSASPermissions,
  FileSystemAttributes,
  ShareFileClient,
  ShareServiceClient,
  parseOctalFileMode,
  toOctalFileMode,
} = require("@azure/storage-file-share");
const { all, assert, check, connectionString, inAnHour, newName, refused, run } = require("./checks.cjs");

const options = { retryOptions: { maxTries: 1 } };
const service = ShareServiceClient.fromConnectionString(connectionString, options);
const share = service.getShareClient(newName());

check("a share is made, described and listed", async () => {
  await share.create({ metadata: { a: "1" }, quota: 7 });
  const found = await share.getProperties();
  assert.deepEqual([found.metadata, found.quota], [{ a: "1" }, 7]);
  await share.setMetadata({ b: "2" });
  await share.setQuota(8);
  const listed = await all(service.listShares({ prefix: share.name, includeMetadata: true }));
  assert.deepEqual(listed.map((item) => [item.name, item.metadata, item.properties.quota]), [[share.name, { b: "2" }, 8]]);
  await refused(409, "ShareAlreadyExists", () => share.create());
});

check("directories are made and listed", async () => {
  const directory = share.getDirectoryClient("folder ä");
  await directory.create({ metadata: { a: "1" } });
  await directory.getDirectoryClient("below").create();
  await directory.createFile("file.txt", 3);
  const found = (await all(directory.listFilesAndDirectories())).map((item) => `${item.kind} ${item.name}`);
  assert.deepEqual(found.sort(), ["directory below", "file file.txt"]);
  assert.equal((await directory.getProperties()).fileAttributes, "Directory");
  await refused(409, "DirectoryNotEmpty", () => directory.delete());
  await refused(404, "ParentNotFound", () => share.getDirectoryClient("none/below").create());
});

check("a file is written and read", async () => {
  const file = share.rootDirectoryClient.getFileClient("letter 日本語.txt");
  const data = randomBytes(9 * 1024 * 1024 + 5);
  await file.uploadData(data, { rangeSize: 4 * 1024 * 1024, concurrency: 3, metadata: { a: "1" } });
  assert.ok(data.equals(await file.downloadToBuffer()));
  const part = await file.downloadToBuffer(Buffer.alloc(10), 7, 10);
  assert.ok(data.subarray(7, 17).equals(part));
  const found = await file.getProperties();
  assert.deepEqual([found.contentLength, found.metadata], [data.length, { a: "1" }]);
});

check("ranges are written, cleared and listed", async () => {
  const file = share.rootDirectoryClient.getFileClient("ranges");
  await file.create(4096);
  await file.uploadRange(Buffer.alloc(1024, "x"), 512, 1024);
  await file.clearRange(512, 512);
  assert.deepEqual((await file.getRangeList()).rangeList, [{ start: 1024, end: 1535 }]);
  await file.resize(1536);
  assert.equal((await file.downloadToBuffer()).toString(), "\0".repeat(1024) + "x".repeat(512));
});

check("headers, attributes and permissions", async () => {
  const file = share.rootDirectoryClient.getFileClient("described");
  await file.create(1, { fileHttpHeaders: { fileContentType: "text/x" } });
  await file.setHttpHeaders({ fileContentType: "text/y" });
  const when = new Date("2020-02-03T04:05:06.000Z");
  await file.setProperties({ fileAttributes: FileSystemAttributes.parse("Hidden"), creationTime: when });
  const found = await file.getProperties();
  assert.deepEqual([found.fileAttributes, found.fileCreatedOn.getTime()], ["Hidden", when.getTime()]);
  const text = "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513D:AI(A;;FA;;;SY)S:NO_ACCESS_CONTROL";
  const { filePermissionKey } = await share.createPermission(text);
  assert.ok((await share.getPermission(filePermissionKey)).permission.includes("(A;;FA;;;SY)"));
});

check("a lease keeps others away", async () => {
  const file = share.rootDirectoryClient.getFileClient("leased");
  await file.create(1);
  const lease = file.getShareLeaseClient();
  const { leaseId } = await lease.acquireLease(-1);
  await refused(412, "LeaseIdMissing", () => file.uploadRange("x", 0, 1));
  await file.uploadRange("x", 0, 1, { leaseAccessConditions: { leaseId } });
  await lease.releaseLease();
  await file.delete();
});

// Renaming is left to other clients: this one drops the account from an address that has it in its path.

check("a file is copied", async () => {
  const source = share.rootDirectoryClient.getFileClient("source");
  await source.create(3);
  await source.uploadRange("abc", 0, 3);
  const copy = share.rootDirectoryClient.getFileClient("copy");
  assert.equal((await copy.startCopyFromURL(source.url)).copyStatus, "success");
  assert.equal((await copy.downloadToBuffer()).toString(), "abc");
  const url = source.generateSasUrl({ permissions: FileSASPermissions.parse("r"), expiresOn: inAnHour() });
  await copy.uploadRangeFromURL(url, 1, 0, 2);
  assert.equal((await copy.downloadToBuffer()).toString(), "bcc");
});

check("a snapshot of the share keeps what was", async () => {
  const file = share.rootDirectoryClient.getFileClient("copy");
  const { snapshot } = await share.createSnapshot();
  await file.delete();
  const past = share.withSnapshot(snapshot).rootDirectoryClient.getFileClient("copy");
  assert.equal((await past.downloadToBuffer()).toString(), "bcc");
  await refused(409, "ShareHasSnapshots", () => share.delete());
});

check("ranges are compared with a snapshot", async () => {
  const file = share.rootDirectoryClient.getFileClient("compared");
  await file.create(4096);
  await file.uploadRange(Buffer.alloc(512, "x"), 0, 512);
  const { snapshot } = await share.createSnapshot();
  await file.uploadRange(Buffer.alloc(512, "y"), 1024, 512);
  await file.clearRange(0, 512);
  const changes = await file.getRangeListDiff(snapshot);
  assert.deepEqual([changes.ranges, changes.clearRanges], [[{ start: 1024, end: 1535 }], [{ start: 0, end: 511 }]]);
});

check("a share that speaks NFS has owners, modes and links", async () => {
  const nfs = service.getShareClient(newName());
  await nfs.create({ protocols: { nfsEnabled: true } });
  const file = nfs.rootDirectoryClient.getFileClient("file");
  await file.create(5, { posixProperties: { owner: "7", group: "8", fileMode: parseOctalFileMode("0640") } });
  await file.uploadRange("hello", 0, 5);
  const hard = nfs.rootDirectoryClient.getFileClient("hard");
  await hard.createHardLink("file");
  const found = (await hard.getProperties()).posixProperties;
  assert.deepEqual([found.owner, found.group, toOctalFileMode(found.fileMode), found.linkCount], ["7", "8", "0640", 2]);
  await file.delete();
  assert.equal((await hard.downloadToBuffer()).toString(), "hello");
  const soft = nfs.rootDirectoryClient.getFileClient("soft");
  await soft.createSymbolicLink("hard");
  assert.equal((await soft.getSymbolicLink()).linkText, "hard");
  assert.equal((await soft.getProperties()).posixProperties.fileType, "SymLink");
  await nfs.delete();
});

check("a token allows to read one file", async () => {
  const file = share.rootDirectoryClient.getFileClient("source");
  const url = file.generateSasUrl({ permissions: FileSASPermissions.parse("r"), expiresOn: inAnHour() });
  const reader = new ShareFileClient(url, undefined, options);
  assert.equal((await reader.downloadToBuffer()).toString(), "abc");
  await refused(403, "AuthorizationPermissionMismatch", () => reader.delete());
});

check("statistics and service properties", async () => {
  assert.ok((await share.getStatistics()).shareUsageBytes > 9 * 1024 * 1024);
  const found = await service.getProperties();
  await service.setProperties({ cors: found.cors });
});

check("a share goes with all that is in it", async () => {
  await share.delete({ deleteSnapshots: "include" });
  await refused(404, "ShareNotFound", () => share.getProperties());
});

run();
