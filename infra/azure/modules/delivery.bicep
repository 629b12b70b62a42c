// The delivery of VM events from the subscription's topic, in the topic's own resource group.
param name string
param topicName string
param functionId string
param deadLetterAccountId string
param deadLetterContainer string

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' existing = {
  name: topicName
}

resource delivery 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: topic
  name: name
  properties: {
    destination: { endpointType: 'AzureFunction', properties: { resourceId: functionId, maxEventsPerBatch: 1 } }
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
      properties: { resourceId: deadLetterAccountId, blobContainerName: deadLetterContainer }
    }
  }
}
