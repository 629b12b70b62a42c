import type { TokenCredential } from '@azure/identity';

/** Where a storage account is, and who asks: its name and key in a connection string, or an address and an identity. */
export type StorageAccess =
  | { readonly connectionString: string }
  | { readonly url: string; readonly credential: TokenCredential };

/** Plain http is for an emulator on this machine alone. */
export function insecure(access: StorageAccess): boolean {
  const text = 'url' in access ? access.url : access.connectionString;
  return /(^|;(Table|Queue)Endpoint=)http:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/]/i.test(text);
}

/** The status of an answer that an SDK threw. */
export function statusOf(error: unknown): number | undefined {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' ? status : undefined;
}
