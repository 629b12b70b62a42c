// The function app on Flex Consumption, with an identity of its own, and what that identity may do with the app's account.
param name string
param location string
param tags object
param storageName string
param insightsName string
@description('Settings of the deployment, beside those that say where its own account is.')
param settings object

resource account 'Microsoft.Storage/storageAccounts@2025-08-01' existing = {
  name: storageName
}

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: '${name}-plan'
  location: location
  tags: tags
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: { reserved: true }
}

resource site 'Microsoft.Web/sites@2025-03-01' = {
  name: '${name}-${uniqueString(resourceGroup().id)}'
  location: location
  tags: tags
  kind: 'functionapp,linux'
  identity: { type: 'SystemAssigned' }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    siteConfig: { minTlsVersion: '1.2', ftpsState: 'Disabled' }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${account.properties.primaryEndpoints.blob}deployment'
          authentication: { type: 'SystemAssignedIdentity' }
        }
      }
      runtime: { name: 'node', version: '24' }
      // ARM's buckets are the subscription's: more instances only meet throttling.
      scaleAndConcurrency: { maximumInstanceCount: 40, instanceMemoryMB: 2048 }
    }
  }

  resource appSettings 'config' = {
    name: 'appsettings'
    properties: union(settings, {
      AzureWebJobsStorage__accountName: account.name
      APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
      APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'Authorization=AAD'
      GLEANER_TABLE: 'gleaner'
      GLEANER_STORAGE__queueServiceUri: account.properties.primaryEndpoints.queue
      GLEANER_STORAGE__tableServiceUri: account.properties.primaryEndpoints.table
      GLEANER_STORAGE__credential: 'managedidentity'
    })
  }

  // Nobody publishes with a password.
  resource scm 'basicPublishingCredentialsPolicies' = {
    name: 'scm'
    properties: { allow: false }
  }

  resource ftp 'basicPublishingCredentialsPolicies' = {
    name: 'ftp'
    properties: { allow: false }
  }
}

// Built-in roles, by their ids (learn.microsoft.com/azure/role-based-access-control/built-in-roles).
var dataRoles = {
  // The Functions host: its locks and keys, and the code's container.
  blobOwner: 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
  // Triggers, put-backs and poison queues, which are made when they are missing.
  queueContributor: '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
  // The ledger.
  tableContributor: '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
}

resource dataAssignments 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for one in items(dataRoles): {
    name: guid(account.id, name, one.key)
    scope: account
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', one.value)
      principalId: site.identity.principalId
      principalType: 'ServicePrincipal'
    }
  }
]

// Monitoring Metrics Publisher: to send to Application Insights by identity.
resource metricsAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, name, 'metrics')
  scope: insights
  properties: {
    roleDefinitionId: subscriptionResourceId(
      'Microsoft.Authorization/roleDefinitions',
      '3913510d-42f4-4e42-8a64-420c390055eb'
    )
    principalId: site.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

output name string = site.name
output principalId string = site.identity.principalId
