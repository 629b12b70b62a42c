#!/usr/bin/env bash
# Deploys Gleaner into the subscription that `az` is logged in to: what it needs, then its code, then the VM events, which
# Event Grid only delivers to a function that is there. Can be run again at any time.
#   infra/azure/deploy.sh [FILE.bicepparam]        default: main.bicepparam beside this script
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
params=${1:-$here/main.bicepparam}
[ -f "$params" ] || { echo "deploy: no parameter file $params" >&2; exit 2; }
for tool in az npm zip; do
  command -v "$tool" >/dev/null || { echo "deploy: $tool is needed" >&2; exit 2; }
done

location=$(az bicep build-params --file "$params" --stdout | node -e '
  let text = "";
  process.stdin.on("data", (part) => { text += part; });
  process.stdin.on("end", () => console.log(JSON.parse(JSON.parse(text).parametersJson).parameters.location.value));')

deploy() {
  az deployment sub create --name gleaner --location "$location" --parameters "$params" --parameters eventSubscription="$1" \
    --query properties.outputs --output json
}
value() {
  node -e 'console.log(JSON.parse(process.argv[1])[process.argv[2]].value)' "$1" "$2"
}

# Until the function is there Event Grid cannot deliver to it; once it is, the events must not stop in between.
events=false
known=$(az functionapp list --query "[?tags.application=='gleaner'] | [0].[resourceGroup, name]" --output tsv | tr '\n' ' ')
if [ -n "${known// /}" ]; then
  read -r known_group known_app <<<"$known"
  if az functionapp function show --resource-group "$known_group" --name "$known_app" --function-name vmEvent --output none 2>/dev/null; then
    events=true
  fi
fi

echo "1/3 what it needs ($params)"
outputs=$(deploy "$events")
group=$(value "$outputs" resourceGroupName)
app=$(value "$outputs" functionAppName)

echo "2/3 the code, to $app"
(cd "$here/../.." && npm run --silent build -- azure)
package=$(mktemp -d)/gleaner.zip
(cd "$here/../../dist/azure" && zip --quiet --recurse-paths "$package" . --exclude '*.map')
az functionapp deployment source config-zip --resource-group "$group" --name "$app" --src "$package" --output none
rm -rf "$(dirname "$package")"

echo "3/3 the VM events"
deploy true >/dev/null
echo "done: $app in $group"
