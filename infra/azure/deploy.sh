#!/usr/bin/env bash
# Deploys Gleaner into the subscription that `az` is logged in to: what it needs, then its code, then the VM events, which
# Event Grid only delivers to a function that is there. Can be run again at any time; a delivery that exists stays, since a
# deployment of a subscription takes nothing away.
#   infra/azure/deploy.sh [FILE.bicepparam]        default: main.bicepparam beside this script
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
params=${1:-$here/main.bicepparam}
fail() {
  echo "deploy: $2" >&2
  exit "$1"
}
[ -f "$params" ] || fail 2 "no parameter file $params"
for tool in az node npm zip; do
  command -v "$tool" >/dev/null || fail 2 "$tool is needed"
done

built=$(az bicep build-params --file "$params" --stdout)
parameter() {
  node -e '
    const [text, name, otherwise] = process.argv.slice(1);
    console.log(JSON.parse(JSON.parse(text).parametersJson).parameters[name]?.value ?? otherwise);' "$built" "$1" "$2"
}
location=$(parameter location '')
[ -n "$location" ] || fail 2 "$params sets no location"
name=$(parameter name gleaner)

deploy() {
  az deployment sub create --name "$name" --location "$location" --parameters "$params" --parameters eventSubscription="$1" \
    --query properties.outputs --output json
}
value() {
  node -e 'console.log(JSON.parse(process.argv[1])[process.argv[2]].value)' "$1" "$2"
}

echo "1/3 what it needs ($params)"
outputs=$(deploy false)
group=$(value "$outputs" resourceGroupName)
app=$(value "$outputs" functionAppName)

echo "2/3 the code, to $app"
(cd "$here/../.." && npm run --silent build -- azure)
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
(cd "$here/../../dist/azure" && zip --quiet --recurse-paths "$package/gleaner.zip" . --exclude '*.map')
az functionapp deployment source config-zip --resource-group "$group" --name "$app" --src "$package/gleaner.zip" --output none

echo "3/3 the VM events"
# The app has started once it tells of its functions.
for try in $(seq 30); do
  if az functionapp function show --resource-group "$group" --name "$app" --function-name vmEvent --output none 2>/dev/null; then
    break
  fi
  [ "$try" -lt 30 ] || fail 1 "$app shows no function vmEvent; its log says why. Run this again once it does."
  sleep "${GLEANER_DEPLOY_PAUSE:-10}"
done
deploy true >/dev/null
echo "done: $app in $group"
