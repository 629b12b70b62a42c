// VM events of the subscription, to the function that handles them; what cannot be delivered is kept.
param name string
param location string
param tags object
param functionAppName string
param deliveryName string
param eventSubscription bool
@description('The subscription\'s system topic, where it has one.')
param systemTopicId string

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

// Azure allows one system topic for a subscription: where there is one, its resource group and name come as parameters.
resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = if (empty(systemTopicId)) {
  name: '${name}-vm-events'
  location: 'global'
  tags: tags
  properties: { source: subscription().id, topicType: 'Microsoft.Resources.Subscriptions' }
}

module vmEvents 'delivery.bicep' = if (eventSubscription) {
  scope: resourceGroup(empty(systemTopicId) ? resourceGroup().name : split(systemTopicId, '/')[4])
  params: {
    name: deliveryName
    topicName: empty(systemTopicId) ? topic.name : last(split(systemTopicId, '/'))
    functionId: resourceId('Microsoft.Web/sites/functions', functionAppName, 'vmEvent')
    deadLetterAccountId: deadLetters.id
    deadLetterContainer: deadLetters::blobs::container.name
  }
}

output topicId string = empty(systemTopicId) ? topic.id : systemTopicId
