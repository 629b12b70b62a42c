// What a person should know of, and a page to look at.
param name string
param location string
param tags object
param insightsName string
param topicId string
param deliveryName string
param alertEmail string

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}

resource people 'Microsoft.Insights/actionGroups@2023-01-01' = if (!empty(alertEmail)) {
  name: '${name}-people'
  location: 'global'
  tags: tags
  properties: {
    groupShortName: take(name, 12)
    enabled: true
    emailReceivers: [{ name: 'owner', emailAddress: alertEmail, useCommonAlertSchema: true }]
  }
}

// Each log line of the functions is one JSON object in `message`; its `msg` names what is told (docs/events.md).
var lines = 'traces | extend line = parse_json(message)'
var rules = [
  {
    key: 'given-up'
    severity: 1
    what: 'A deletion was given up after the last try: it lies in a poison queue.'
    query: '${lines} | where tostring(line.msg) == "gleaner.item-given-up"'
  }
  {
    key: 'poison'
    severity: 1
    what: 'A message failed five times and was moved to a poison queue.'
    query: 'traces | where message has "MaxDequeueCount" and message has "-poison"'
  }
  {
    key: 'breaker'
    severity: 1
    what: 'The breaker tripped: many VMs are gone at once, and nothing is deleted.'
    query: '${lines} | where tostring(line.msg) == "gleaner.breaker-tripped"'
  }
  {
    key: 'failures'
    severity: 2
    what: 'A function failed.'
    query: 'requests | where success == false'
  }
]

resource alarms 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in rules: {
    name: '${name}-${rule.key}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      description: rule.what
      severity: rule.severity
      enabled: true
      scopes: [insights.id]
      evaluationFrequency: 'PT5M'
      windowSize: 'PT5M'
      criteria: { allOf: [{ query: rule.query, timeAggregation: 'Count', operator: 'GreaterThan', threshold: 0 }] }
      actions: { actionGroups: empty(alertEmail) ? [] : [people.id] }
    }
  }
]

// The other way round: silence is the alarm.
resource sweepMissing 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = {
  name: '${name}-sweep-missing'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    description: 'No sweep has finished for two hours.'
    severity: 2
    enabled: true
    scopes: [insights.id]
    evaluationFrequency: 'PT30M'
    windowSize: 'PT2H'
    criteria: {
      allOf: [
        {
          query: '${lines} | where tostring(line.msg) == "gleaner.sweep-finished"'
          timeAggregation: 'Count'
          operator: 'LessThan'
          threshold: 1
        }
      ]
    }
    actions: { actionGroups: empty(alertEmail) ? [] : [people.id] }
  }
}

var undelivered = [
  {
    key: 'dead-letters'
    metric: 'DeadLetteredCount'
    what: 'Event Grid could not deliver a VM event: it lies among the dead letters.'
  }
  {
    key: 'lost-events'
    metric: 'DroppedEventCount'
    what: 'Event Grid could neither deliver nor keep a VM event. The next sweep finds what the VM left.'
  }
]

resource deliveryAlarms 'Microsoft.Insights/metricAlerts@2026-01-01' = [
  for one in undelivered: {
    name: '${name}-${one.key}'
    location: 'global'
    tags: tags
    properties: {
      description: one.what
      severity: 1
      enabled: true
      scopes: [topicId]
      evaluationFrequency: 'PT15M'
      windowSize: 'PT15M'
      criteria: {
        'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
        allOf: [
          {
            criterionType: 'StaticThresholdCriterion'
            name: 'events'
            metricNamespace: 'Microsoft.EventGrid/systemTopics'
            metricName: one.metric
            dimensions: [{ name: 'EventSubscriptionName', operator: 'Include', values: [deliveryName] }]
            operator: 'GreaterThan'
            threshold: 0
            timeAggregation: 'Total'
          }
        ]
      }
      actions: empty(alertEmail) ? [] : [{ actionGroupId: people.id }]
    }
  }
]

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(resourceGroup().id, name, 'workbook')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: 'Gleaner (${name})'
    category: 'workbook'
    sourceId: insights.id
    serializedData: string(loadJsonContent('../workbook.json'))
  }
}
