// VM events of the subscription, to the function that handles them; what cannot be delivered is kept.
param name string
param location string
param tags object
param functionAppName string
param eventSubscription bool

// A topic of a subscription is global and has no identity, and without one Event Grid writes dead letters by the account's
// key: so they have an account of their own, and the app's account has no key at all.
resource deadLetters 'Microsoft.Storage/storageAccounts@2025-08-01' = {
  name: toLower('${replace(name, '-', '')}${uniqueString(resourceGroup().id, 'dead')}')
  location: location
  tags: tags
  sku: { name: 'Standard_LRS' }
  kind: 'StorageV2'
  properties: { allowBlobPublicAccess: false, minimumTlsVersion: 'TLS1_2', supportsHttpsTrafficOnly: true }

  resource blobs 'blobServices' = {
    name: 'default'

    resource container 'containers' = {
      name: 'events'
    }
  }
}

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = {
  name: '${name}-vm-events'
  location: 'global'
  tags: tags
  properties: { source: subscription().id, topicType: 'Microsoft.Resources.Subscriptions' }
}

resource vmEvents 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = if (eventSubscription) {
  parent: topic
  name: 'vm-events'
  properties: {
    destination: {
      endpointType: 'AzureFunction'
      properties: {
        resourceId: resourceId('Microsoft.Web/sites/functions', functionAppName, 'vmEvent')
        maxEventsPerBatch: 1
      }
    }
    eventDeliverySchema: 'EventGridSchema'
    filter: {
      includedEventTypes: ['Microsoft.Resources.ResourceWriteSuccess', 'Microsoft.Resources.ResourceDeleteSuccess']
      // Compared without case.
      advancedFilters: [
        {
          operatorType: 'StringIn'
          key: 'data.operationName'
          values: ['Microsoft.Compute/virtualMachines/write', 'Microsoft.Compute/virtualMachines/delete']
        }
      ]
    }
    retryPolicy: { maxDeliveryAttempts: 30, eventTimeToLiveInMinutes: 1440 }
    deadLetterDestination: {
      endpointType: 'StorageBlob'
      properties: { resourceId: deadLetters.id, blobContainerName: deadLetters::blobs::container.name }
    }
  }
}

output deadLetterName string = deadLetters.name
