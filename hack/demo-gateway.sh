#!/usr/bin/env bash
# A conversation of a person in a chat with an agent, through a gateway: with the adapter for Slack, and a stand-in for Slack itself. The
# adapter is stopped and started again, and an answer that the chat refuses becomes a dead letter, which is retried. Prints each
# command with its output and leaves nothing running. With CHAT=1 it goes on, and the terminal is the chat.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
work=$(mktemp -d)
server_pid='' model_pid='' room_pid='' adapter_pid=''

finish() {
  local code=$?
  trap - EXIT
  local pid
  for pid in $adapter_pid $server_pid $room_pid $model_pid; do kill "$pid" 2>/dev/null || true; done
  for pid in $adapter_pid $server_pid $room_pid $model_pid; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

random() { head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# adapter: starts the adapter, with what it remembers of earlier starts.
adapter() {
  local flags=(--data "$work/adapter" --listen "$ADAPTER" --tls-cert-file "$work/cert.pem" --tls-key-file "$work/key.pem" --token-file "$work/outbound"
    --slack-listen "$(<"$work/slack-listen")" --api-url "$(<"$work/api-url")" --bot-token-file "$work/bot-token" --signing-secret-file "$work/signing-secret"
    --events-url "$events" --events-token-file "$work/inbound")
  told "slack-gateway ${flags[*]} &"
  slack-gateway "${flags[@]}" >>"$work/adapter.log" 2>&1 &
  adapter_pid=$!
}

# until_is PATH PATTERN OBJECT...: waits until a member of an object is what the pattern says.
until_is() {
  local path=$1 pattern=$2 value=''
  shift 2
  until value=$(kubectl get "$@" -o jsonpath="{$path}") && [[ $value =~ ^($pattern)$ ]]; do
    kill -0 "$server_pid" || { cat "$work/server.log"; exit 1; }
    sleep 0.2
  done
}

# event TEXT: sets $event to the record of what ada said, as soon as there is one.
event() {
  until event=$(kubectl get gatewayevents -o jsonpath="{.items[?(@.spec.text==\"$1\")].metadata.name}") && [[ -n $event ]]; do
    kill -0 "$server_pid" "$room_pid" || { tail "$work"/*.log; exit 1; }
    sleep 0.1
  done
}

# delivery: sets $delivery to the answer to $event, as soon as there is one.
delivery() {
  until delivery=$(kubectl get gatewaydeliveries --field-selector "spec.eventId=$event" -o jsonpath='{.items[*].metadata.name}') && [[ -n $delivery ]]; do sleep 0.2; done
}

# ada TEXT: says something in the chat.
ada() { printf '%s\n' "$1" >&3; }

model "$work" "$root/test/scriptedmodel/scripts/gateway.yaml"

say 'A chat: a stand-in for Slack, a workspace with one channel. What is said there is shown with a bar before it'
mkfifo "$work/ada"
told 'slackroom &'
slackroom --dir "$work" <"$work/ada" > >(tee "$work/said") 2>"$work/room.log" &
room_pid=$!
exec 3>"$work/ada"
await "$work/room.log" 'serving' "$room_pid"
ADAPTER=$(<"$work/listen")

say 'Start the server. It may reach the adapter, which is on this machine'
flags=(--data-dir "$work/data" --secure-port 0 --rest-bind-address 127.0.0.1:0 --gateway-allow "$ADAPTER")
told "platform-standalone ${flags[*]}"
platform-standalone "${flags[@]}" >"$work/server.log" 2>&1 &
server_pid=$!
await "$work/server.log" "$started" "$server_pid"
export KUBECONFIG=$work/data/kubeconfig
until rest=$(sed -n 's|^ *REST *\(http[^ ]*\)/api/v1$|\1|p' "$work/server.log") && [[ -n $rest ]]; do sleep 0.1; done
events=$rest/api/v1/gateways/default/slack/events

say 'Start the adapter, which connects the chat with the platform. Each side has a token for the other'
random >"$work/inbound"
random >"$work/outbound"
adapter

say 'An agent that answers in the channel'
show sed -n '/^kind: Gateway$/,$p' artifacts/demo/gateway.yaml
told 'kubectl apply -f artifacts/demo/team.yaml -f artifacts/demo/gateway.yaml'
manifest artifacts/demo/team.yaml | kubectl apply -f -
text=$(<artifacts/demo/gateway.yaml)
text=${text//'${INBOUND_TOKEN}'/$(<"$work/inbound")}
text=${text//'${OUTBOUND_TOKEN}'/$(<"$work/outbound")}
text=${text//'${ADAPTER_CA}'/$(base64 <"$work/cert.pem" | tr -d '\n')}
kubectl apply -f - <<<"${text//'${ADAPTER}'/$ADAPTER}"
show kubectl wait --for=condition=Ready --timeout=60s gateway/slack gatewaybinding/support
show platform gateway list

say 'A person asks something in the chat, and the agent answers there'
ada 'When is the next release?'
event 'When is the next release?'
delivery
until_is .status.state 'Delivered' gatewaydelivery "$delivery"
show platform gateway events explain "$event"

say 'Another question; and while its task runs, the adapter is killed. Nobody can post the answer now'
ada 'And the one after it?'
event 'And the one after it?'
told "kill -9 $adapter_pid"
kill -9 "$adapter_pid"
wait "$adapter_pid" 2>/dev/null || true
adapter_pid=''
delivery
until_is .status.state 'RetryScheduled|Delivered' gatewaydelivery "$delivery"
show platform gateway deliveries list

say 'The answer waits. No attempt was spent on it, because nothing could be sent. The adapter comes back, and it is delivered by itself'
adapter
until_is .status.state 'Delivered' gatewaydelivery "$delivery"
show platform gateway deliveries list

say 'Somebody archives the channel, so that the chat refuses the next answer for good'
ada '/archive'
ada 'Thank you!'
event 'Thank you!'
delivery
until_is .status.state 'DeadLettered' gatewaydelivery "$delivery"
show platform gateway deliveries list --state DeadLettered
show platform gateway events explain "$event"

say 'That is a dead letter: nothing is lost, and it is kept until a person does something. Open the channel again, and retry'
ada '/unarchive'
until grep -q '(unarchived)' "$work/said"; do sleep 0.1; done
show platform gateway deliveries retry "$delivery"
until_is .status.state 'Delivered' gatewaydelivery "$delivery"

say 'The whole conversation, as the platform has it'
show platform gateway events list
show platform gateway deliveries list
took=$SECONDS
if [[ -n ${CHAT:-} ]]; then
  say 'The chat is yours: what you type is what Ada says. Ctrl-D ends it'
  cat >&3
fi
say "Done in $took s. To write in the chat yourself: CHAT=1 make demo-gateway. docs/gateways.md says how to connect a real one"
