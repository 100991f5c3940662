// Calls of the npm client over a Files emulator, each with a check of its answer, or the error code that is right.
import {
  FileSASPermissions, generateFileSASQueryParameters, ShareFileClient, ShareServiceClient, StorageSharedKeyCredential,
} from "@azure/storage-file-share";

const text = process.env.AZURE_STORAGE_CONNECTION_STRING;
const service = ShareServiceClient.fromConnectionString(text);
const credential = new StorageSharedKeyCredential("devstoreaccount1", text.match(/AccountKey=([^;]*)/)[1]);
let calls = 0, others = 0;

async function check(name, call, right = () => true) {
  let said;
  try {
    const answer = await call();
    said = right instanceof Function && right(answer) ? "" : JSON.stringify(answer);
  } catch (error) {
    said = error.code === right ? "" : `${error.statusCode} ${error.code} ${error.message}`;
  }
  calls += 1;
  others += said ? 1 : 0;
  if (said) console.log(`${name}: ${said}`);
}

const all = async (it) => { const r = []; for await (const x of it) r.push(x); return r; };
const s = service.getShareClient("npmshare");
const d = s.getDirectoryClient("docs"); const f = d.getFileClient("a.bin");
await check("service getProperties", () => service.getProperties(), r => r.cors !== undefined && r.protocol?.smb !== undefined);
await check("service setProperties", () => service.setProperties({ hourMetrics: { enabled: true, version: "1.0", includeAPIs: true, retentionPolicy: { enabled: true, days: 3 } } }));
await check("share create", () => s.create({ quota: 5, metadata: { a: "b" } }), r => !!r.etag);
await check("share createIfNotExists", () => s.createIfNotExists(), r => r.succeeded === false && r.errorCode === "ShareAlreadyExists");
await check("share exists", () => s.exists(), r => r === true);
await check("share getProperties", () => s.getProperties(), r => r.quota === 5 && r.metadata.a === "b");
await check("share setProperties", () => s.setProperties({ quotaInGB: 6 }));
await check("share setQuota", () => s.setQuota(7));
await check("share setMetadata", () => s.setMetadata({ c: "d" }));
await check("share getStatistics", () => s.getStatistics(), r => r.shareUsageBytes === 0);
await check("share setAccessPolicy", () => s.setAccessPolicy([{ id: "readers", accessPolicy: { startsOn: new Date("2020-01-01"), expiresOn: new Date("2100-01-01"), permissions: "rl" } }]));
await check("share getAccessPolicy", () => s.getAccessPolicy(), r => r.signedIdentifiers[0].accessPolicy.expiresOn.getUTCFullYear() === 2100);
let permission, snapshot;
await check("share createPermission", () => s.createPermission("O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)").then(r => { permission = r.filePermissionKey; return r; }), r => !!r.filePermissionKey);
await check("share getPermission", () => s.getPermission(permission), r => r.permission.startsWith("O:S-1"));
await check("service listShares", () => all(service.listShares({ includeMetadata: true, prefix: "npm" })), r => r.length === 1 && r[0].properties.quota === 7);
await check("service listShares byPage", async () => (await service.listShares().byPage({ maxPageSize: 1 }).next()).value, r => r.shareItems.length === 1);
await check("directory create", () => d.create({ metadata: { a: "b" } }));
await check("directory createIfNotExists", () => d.createIfNotExists(), r => r.succeeded === false);
await check("directory exists", () => d.exists(), r => r === true);
await check("directory getProperties", () => d.getProperties(), r => r.metadata.a === "b" && r.fileAttributes === "Directory");
await check("directory setMetadata", () => d.setMetadata({ c: "d" }));
await check("directory setProperties", () => d.setProperties({ fileAttributes: "Hidden|Directory", creationTime: new Date("2020-01-01") }));
await check("directory createSubdirectory", () => d.createSubdirectory("sub"));
await check("file create", () => f.create(1024, { fileHttpHeaders: { fileContentType: "text/x" }, metadata: { a: "b" }, fileAttributes: "Archive|ReadOnly" }));
await check("file delete (read-only)", () => f.delete(), "ReadOnlyAttribute");
await check("file setProperties", () => f.setProperties({ fileAttributes: "Archive" }));
await check("file uploadRange", () => f.uploadRange("hello", 0, 5));
await check("file uploadData", () => d.getFileClient("big").uploadData(Buffer.alloc(9 * 1024 * 1024, 7), { rangeSize: 4 * 1024 * 1024, concurrency: 3 }));
await check("file downloadToBuffer", () => d.getFileClient("big").downloadToBuffer(), r => r.length === 9 * 1024 * 1024 && r[5] === 7);
await check("file download (a range)", () => f.download(0, 5), r => r.contentLength === 5 && r.contentRange.endsWith("/1024"));
await check("file getProperties", () => f.getProperties(), r => r.contentLength === 1024 && r.metadata.a === "b");
await check("file exists", () => f.exists(), r => r === true);
await check("file setMetadata", () => f.setMetadata({ c: "d" }));
await check("file setHttpHeaders", () => f.setHttpHeaders({ fileContentType: "text/plain", fileCacheControl: "no-cache" }));
await check("file resize", () => f.resize(2048));
await check("file clearRange", () => f.clearRange(0, 512));
await check("file getRangeList", () => f.getRangeList(), r => Array.isArray(r.rangeList));
const sas = generateFileSASQueryParameters({ shareName: "npmshare", filePath: "docs/a.bin", permissions: FileSASPermissions.parse("r"), expiresOn: new Date("2100-01-01") }, credential).toString();
await check("file uploadRangeFromURL", () => d.getFileClient("b").create(2048).then(() => d.getFileClient("b").uploadRangeFromURL(`${f.url}?${sas}`, 0, 0, 1024)));
await check("file startCopyFromURL", () => d.getFileClient("c").startCopyFromURL(f.url), r => r.copyStatus === "success");
await check("file abortCopyFromURL", () => d.getFileClient("c").abortCopyFromURL("abcdabcd-abcd-abcd-abcd-abcdabcdabcd"), "NoPendingCopyOperation");
await check("file read by SAS", () => new ShareFileClient(`${f.url}?${sas}`).getProperties(), r => r.contentLength === 2048);
await check("directory listFilesAndDirectories", () => all(d.listFilesAndDirectories({ includeTimestamps: true, includeEtag: true, includeAttributes: true, includePermissionKey: true, includeExtendedInfo: true })), r => r.length === 5 && r.every(x => x.fileId !== undefined && x.properties.lastModified instanceof Date && x.properties.creationTime instanceof Date));
await check("directory listFilesAndDirectories prefix", () => all(d.listFilesAndDirectories({ prefix: "b" })), r => r.length === 2);
await check("directory listHandles", () => all(d.listHandles({ recursive: true })), r => r.length === 0);
await check("directory forceCloseAllHandles", () => d.forceCloseAllHandles({ recursive: true }), r => r.closedHandlesCount === 0);
await check("file listHandles", () => all(f.listHandles()), r => r.length === 0);
const l = f.getShareLeaseClient();
await check("file lease acquire", () => l.acquireLease(-1), r => !!r.leaseId);
await check("file write while leased", () => f.setMetadata({}), "LeaseIdMissing");
await check("file write with the lease", () => f.setMetadata({}, { leaseAccessConditions: { leaseId: l.leaseId } }));
await check("file lease change", () => l.changeLease("dcbadcba-dcba-dcba-dcba-dcbadcbadcba"));
await check("file lease release", () => l.releaseLease());
await check("file lease break", async () => { await f.getShareLeaseClient("abcdabcd-abcd-abcd-abcd-abcdabcdabcd").acquireLease(-1); return f.getShareLeaseClient().breakLease(); });
const sl = s.getShareLeaseClient();
await check("share lease acquire", () => sl.acquireLease(20));
await check("share lease break", () => sl.breakLease({ breakPeriod: 0 }));
await check("file rename", () => f.rename("docs/A.BIN"), "AuthenticationFailed");
await check("directory rename", () => d.rename("papers"), "AuthenticationFailed");
await check("share createSnapshot", () => s.createSnapshot().then(r => { snapshot = r.snapshot; return r; }), r => !!r.snapshot);
await check("file read in a snapshot", () => s.withSnapshot(snapshot).getDirectoryClient("docs").getFileClient("b").getProperties(), r => r.contentLength === 2048);
await check("file getRangeListDiff", () => d.getFileClient("b").getRangeListDiff(snapshot));
await check("directory delete (not empty)", () => d.delete(), "DirectoryNotEmpty");
await check("file delete", () => d.getFileClient("b").delete());
await check("file deleteIfExists", () => d.getFileClient("b").deleteIfExists(), r => r.succeeded === false);
await check("file createHardLink", () => d.getFileClient("h").createHardLink("docs/c"), "MissingRequiredHeader");
await check("file createSymbolicLink", () => d.getFileClient("s").createSymbolicLink("docs/c"), "MissingRequiredHeader");
await check("share create NFS", () => service.getShareClient("npmnfs").create({ protocols: { nfsEnabled: true } }), "InvalidHeaderValue");
await check("share delete (with snapshots)", () => s.delete(), "ShareHasSnapshots");
await check("share delete", () => s.delete({ deleteSnapshots: "include" }));
await check("share deleteIfExists", () => s.deleteIfExists(), r => r.succeeded === false);
await check("service undeleteShare", () => service.undeleteShare("npmshare", "01D60F8BB59A4652"), "ShareNotFound");
console.log(`${calls} calls, ${others} answered otherwise`);
process.exitCode = Math.min(others, 1);
