// Gleaner's role in one of the named resource groups.
param name string
param roleDefinitionId string
param principalId string

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, name, 'assignment')
  properties: { roleDefinitionId: roleDefinitionId, principalId: principalId, principalType: 'ServicePrincipal' }
}
