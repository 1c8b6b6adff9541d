// @azure/data-tables: tables, entities one by one, queries, groups of changes.
"use strict";

const {
  TableClient,
  TableServiceClient,
  TableTransaction,
  AzureNamedKeyCredential,
  generateTableSas,
  odata,
} = require("@azure/data-tables");
const { account, all, assert, check, connectionString, key, newName, refused, run } = require("./checks.cjs");

const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const service = TableServiceClient.fromConnectionString(connectionString, options);
const name = newName();
const table = TableClient.fromConnectionString(connectionString, name, options);

check("a table is made and listed", async () => {
  await table.createTable();
  const found = await all(service.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } }));
  assert.deepEqual(found.map((item) => item.name), [name]);
  const raw = TableClient.fromConnectionString(connectionString, name, options);
  await raw.createTable(); // The library passes over a table that is there already.
});

check("an entity keeps its types", async () => {
  const entity = {
    partitionKey: "p",
    rowKey: "types ä 'x' +%&=",
    text: "ä 'quoted' \"日本\"",
    number: 42,
    fraction: 1.5,
    big: 9007199254740993n,
    yes: true,
    when: new Date("2026-01-02T03:04:05.678Z"),
    bytes: new Uint8Array([0, 1, 255]),
    guid: { type: "Guid", value: "11111111-1111-4111-8111-111111111111" },
  };
  const made = await table.createEntity(entity);
  const found = await table.getEntity("p", "types ä 'x' +%&=", { disableTypeConversion: false });
  assert.equal(found.etag, made.etag);
  for (const field of ["text", "number", "fraction", "big", "yes"]) assert.deepEqual(found[field], entity[field], field);
  assert.deepEqual(Buffer.from(found.bytes), Buffer.from(entity.bytes));
  assert.equal(new Date(found.when).getTime(), entity.when.getTime());
  assert.equal(found.guid.value ?? found.guid, entity.guid.value);
  await refused(409, "EntityAlreadyExists", () => table.createEntity(entity));
});

check("merge adds, replace leaves nothing else", async () => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", a: 1, b: 2 });
  await table.updateEntity({ partitionKey: "p", rowKey: "r", b: 3, c: 4 }, "Merge");
  let found = await table.getEntity("p", "r");
  assert.deepEqual([found.a, found.b, found.c], [1, 3, 4]);
  await table.updateEntity({ partitionKey: "p", rowKey: "r", d: 5 }, "Replace");
  found = await table.getEntity("p", "r");
  assert.deepEqual([found.a, found.d], [undefined, 5]);
  await table.upsertEntity({ partitionKey: "p", rowKey: "new", a: 1 }, "Merge");
  await table.upsertEntity({ partitionKey: "p", rowKey: "new", b: 1 }, "Replace");
  assert.deepEqual((await table.getEntity("p", "new")).a, undefined);
  await refused(404, "ResourceNotFound", () => table.updateEntity({ partitionKey: "p", rowKey: "none" }, "Merge"));
});

check("an ETag decides who wins", async () => {
  const first = await table.getEntity("p", "r");
  await table.updateEntity({ partitionKey: "p", rowKey: "r", winner: 1 }, "Merge", { etag: first.etag });
  const late = () => table.updateEntity({ partitionKey: "p", rowKey: "r", winner: 2 }, "Merge", { etag: first.etag });
  await refused(412, "UpdateConditionNotSatisfied", late);
  await refused(412, "UpdateConditionNotSatisfied", () => table.deleteEntity("p", "r", { etag: first.etag }));
  assert.equal((await table.getEntity("p", "r")).winner, 1);
});

check("groups of changes happen together or not at all", async () => {
  const group = new TableTransaction();
  for (let row = 0; row < 100; row += 1) group.createEntity({ partitionKey: "group", rowKey: `${row}`.padStart(3, "0"), row });
  const done = await table.submitTransaction(group.actions);
  assert.equal(done.subResponses.length, 100);
  const mixed = [
    ["update", { partitionKey: "group", rowKey: "000", changed: true }, "Merge"],
    ["delete", { partitionKey: "group", rowKey: "001" }],
    ["upsert", { partitionKey: "group", rowKey: "100", row: 100 }, "Replace"],
    ["create", { partitionKey: "group", rowKey: "002" }],
  ];
  const problem = await table.submitTransaction(mixed).then(() => null, (caught) => caught);
  assert.equal(problem?.statusCode, 409);
  assert.equal((await table.getEntity("group", "000")).changed, undefined);
  await table.submitTransaction(mixed.slice(0, 3));
  assert.equal((await table.getEntity("group", "000")).changed, true);
  await refused(404, "ResourceNotFound", () => table.getEntity("group", "001"));
});

check("queries filter, choose and come in pages", async () => {
  const filter = odata`PartitionKey eq 'group' and row ge ${90} and not (row eq ${95})`;
  const found = await all(table.listEntities({ queryOptions: { filter, select: ["rowKey", "row"] } }));
  assert.deepEqual(found.map((entity) => entity.row), [90, 91, 92, 93, 94, 96, 97, 98, 99, 100]);
  const sizes = [];
  for await (const page of table.listEntities({ queryOptions: { filter: odata`PartitionKey eq 'group'` } }).byPage({ maxPageSize: 40 })) {
    sizes.push(page.length);
  }
  assert.deepEqual(sizes, [40, 40, 20]);
});

check("a token opens one partition", async () => {
  const terms = { permissions: { query: true }, startPartitionKey: "group", endPartitionKey: "group" };
  const token = generateTableSas(name, new AzureNamedKeyCredential(account, key), { ...terms, expiresOn: new Date(Date.now() + 3600000) });
  const reader = new TableClient(`${table.url}?${token}`, name, options);
  const found = await all(reader.listEntities());
  assert.deepEqual(new Set(found.map((entity) => entity.partitionKey)), new Set(["group"]));
  const problem = await reader.createEntity({ partitionKey: "group", rowKey: "x" }).then(() => null, (caught) => caught);
  assert.equal(problem?.statusCode, 403);
});

check("stored policies and service properties", async () => {
  const policy = { id: "p", accessPolicy: { permission: "r", expiry: new Date(Date.now() + 3600000), start: new Date(0) } };
  await table.setAccessPolicy([policy]);
  assert.equal((await table.getAccessPolicy())[0].accessPolicy.permission, "r");
  await service.setProperties(await service.getProperties());
});

check("a table goes with all that is in it", async () => {
  await table.deleteTable();
  await refused(404, "TableNotFound", () => table.getEntity("p", "r"));
});

run();
