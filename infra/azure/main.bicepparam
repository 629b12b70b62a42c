using 'main.bicep'

param location = 'westeurope'
param name = 'gleaner'
param mode = 'observe'
// Empty: the whole subscription.
param resourceGroups = []
param policy = {
  grace: '30m'
  minAge: '10m'
}
param schedule = '0 */30 * * * *'
param alertEmail = ''
