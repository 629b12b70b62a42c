// Gleaner for one subscription: a function app that finds and deletes what its VMs left behind, and what it needs.
targetScope = 'subscription'

@description('Where the resources of Gleaner itself lie.')
param location string = deployment().location

@description('Names everything; short, since storage accounts have it in their names.')
@minLength(3)
@maxLength(11)
param name string = 'gleaner'

@description('observe decides and records; only enforce holds the permission to delete.')
@allowed(['observe', 'enforce'])
param mode string = 'observe'

@description('Only these resource groups; empty = the whole subscription. They must exist.')
param resourceGroups string[] = []

@description('The policy, as docs/configuration.md describes it.')
param policy object = {}

@description('When to sweep: NCRONTAB with seconds, in UTC.')
@minLength(11)
param schedule string = '0 */30 * * * *'

@description('Who is told of alarms; empty = they are only shown.')
param alertEmail string = ''

@description('Days that logs are kept.')
@minValue(30)
@maxValue(730)
param retentionDays int = 90

@description('How much is logged. Notices and metrics are of the level info.')
@allowed(['debug', 'info'])
param logLevel string = 'info'

@description('Whether VM events are delivered. False for the first deployment: Event Grid asks for the function, which comes with the code.')
param eventSubscription bool = false

@description('Resource id of the system topic of this subscription, where it has one already: Azure allows only one.')
param systemTopicId string = ''

var tags = { application: 'gleaner' }
var deliveryName = '${name}-vm-events'

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: name
  location: location
  tags: tags
}

module monitoring 'modules/monitoring.bicep' = {
  scope: group
  params: { name: name, location: location, tags: tags, retentionDays: retentionDays }
}

module storage 'modules/storage.bicep' = {
  scope: group
  params: { name: name, location: location, tags: tags }
}

module app 'modules/app.bicep' = {
  scope: group
  params: {
    name: name
    location: location
    tags: tags
    storageName: storage.outputs.name
    insightsName: monitoring.outputs.insightsName
    settings: {
      GLEANER_MODE: mode
      GLEANER_POLICY: string(policy)
      GLEANER_SUBSCRIPTIONS: subscription().subscriptionId
      GLEANER_RESOURCE_GROUPS: join(resourceGroups, ',')
      GLEANER_SCHEDULE: schedule
      GLEANER_LOG_LEVEL: logLevel
      AZURE_RESOURCE_MANAGER_ENDPOINT: environment().resourceManager
      AZURE_AUTHORITY_HOST: environment().authentication.loginEndpoint
    }
  }
}

module events 'modules/events.bicep' = {
  scope: group
  params: {
    name: name
    location: location
    tags: tags
    functionAppName: app.outputs.name
    deliveryName: deliveryName
    eventSubscription: eventSubscription
    systemTopicId: systemTopicId
  }
}

module alerts 'modules/alerts.bicep' = {
  scope: group
  params: {
    name: name
    location: location
    tags: tags
    insightsName: monitoring.outputs.insightsName
    topicId: events.outputs.topicId
    deliveryName: deliveryName
    alertEmail: alertEmail
  }
}

// What may be done to the customer's resources: read VMs, NICs and disks; delete NICs and disks, in enforce only.
var reads = [
  'Microsoft.Compute/virtualMachines/read'
  'Microsoft.Compute/disks/read'
  'Microsoft.Network/networkInterfaces/read'
]
var deletes = [
  'Microsoft.Compute/disks/delete'
  'Microsoft.Network/networkInterfaces/delete'
]
resource role 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, name, 'role')
  properties: {
    roleName: 'Gleaner (${name})'
    description: 'Reads virtual machines, network interfaces and disks; deletes network interfaces and disks in enforce.'
    type: 'customRole'
    assignableScopes: [subscription().id]
    permissions: [{ actions: mode == 'enforce' ? concat(reads, deletes) : reads }]
  }
}

// Of the subscription, wherever the resources lie: candidates are searched by Resource Graph, and the end of a deletion is
// asked for at its location.
resource followRole 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, name, 'follow')
  properties: {
    roleName: 'Gleaner follow (${name})'
    description: 'Searches by Resource Graph, which shows only what may be read, and follows deletions to their end.'
    type: 'customRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ResourceGraph/resources/read'
          'Microsoft.Compute/locations/*/read'
          'Microsoft.Network/locations/*/read'
        ]
      }
    ]
  }
}

resource followAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(subscription().id, name, 'follow assignment')
  properties: {
    roleDefinitionId: followRole.id
    principalId: app.outputs.principalId
    principalType: 'ServicePrincipal'
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (empty(resourceGroups)) {
  name: guid(subscription().id, name, 'assignment')
  properties: { roleDefinitionId: role.id, principalId: app.outputs.principalId, principalType: 'ServicePrincipal' }
}

module groupAssignments 'modules/assignment.bicep' = [
  for one in resourceGroups: {
    scope: resourceGroup(one)
    params: { name: name, roleDefinitionId: role.id, principalId: app.outputs.principalId }
  }
]

output resourceGroupName string = group.name
output functionAppName string = app.outputs.name
