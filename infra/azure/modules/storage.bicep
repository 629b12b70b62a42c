// The function app's own account: its code, its queues, its ledger. Reached by identity only; there is no shared key.
param name string
param location string
param tags object

resource account 'Microsoft.Storage/storageAccounts@2025-08-01' = {
  name: toLower('${replace(name, '-', '')}${uniqueString(resourceGroup().id)}')
  location: location
  tags: tags
  sku: { name: 'Standard_ZRS' }
  kind: 'StorageV2'
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    defaultToOAuthAuthentication: true
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-08-01' = {
  parent: account
  name: 'default'
}

resource deployments 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-08-01' = {
  parent: blobs
  name: 'deployment'
}

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-08-01' = {
  parent: account
  name: 'default'
}

var work = ['gleaner-events', 'gleaner-reap', 'gleaner-work']
// The host would make a poison queue at its first message; made here, alarms can watch it from the beginning.
var poison = [for queue in work: '${queue}-poison']

resource queues 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-08-01' = [
  for queue in concat(work, poison): {
    parent: queueService
    name: queue
  }
]

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2025-08-01' = {
  parent: account
  name: 'default'
}

resource ledger 'Microsoft.Storage/storageAccounts/tableServices/tables@2025-08-01' = {
  parent: tableService
  name: 'gleaner'
}

output name string = account.name
