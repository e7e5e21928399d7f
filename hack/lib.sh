# Shared by demo.sh and run.sh: paths, and functions that start what the scripts need.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/_output/bin
PATH=$bin:$PATH

# Colours, for a terminal whose user has not switched them off (no-color.org).
bold='' cyan='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\033[1m' cyan=$'\033[36m' plain=$'\033[0m'; fi

say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
# told TEXT: prints a command that is run in another way than show does.
told() { printf '%s$ %s%s\n' "$cyan" "$*" "$plain"; }
show() { told "$*"; "$@"; }

# started is what a server prints when it is ready. "ready" would not do: an address may be "already in use".
started='is ready after'

# await FILE PATTERN PID: prints FILE while PID writes it, up to the line with PATTERN, and stores that line in $line and
# their number in $shown. It returns as soon as PID ends.
await() {
  shown=0
  : >>"$1" # the process may not have created it yet
  while IFS= read -r line; do
    printf '%s\n' "$line"
    shown=$((shown + 1))
    [[ $line == *$2* ]] && return 0
  done < <(tail -s 0.1 -n +1 --pid="$3" -f "$1" 2>/dev/null)
  echo "process $3 ended before it was ready" >&2
  return 1
}

# openai, anthropic: set MODEL_TYPE, MODEL_URL, MODEL_KEY and MODEL_NAME from the environment. The key is not printed.
openai() {
  MODEL_TYPE=openai MODEL_URL=${OPENAI_BASE_URL:-https://api.openai.com/v1} MODEL_KEY=$OPENAI_API_KEY MODEL_NAME=${OPENAI_MODEL:-gpt-4o-mini}
}
anthropic() {
  MODEL_TYPE=anthropic MODEL_URL=${ANTHROPIC_BASE_URL:-https://api.anthropic.com} MODEL_KEY=$ANTHROPIC_API_KEY
  MODEL_NAME=${ANTHROPIC_MODEL:-claude-haiku-4-5}
}

# model DIR [SCRIPT]: sets these variables for the demo's agent. If the environment names no endpoint, it starts a scripted substitute
# for a model, with its log in DIR.
model() {
  if [[ -n ${OPENAI_API_KEY:-} ]]; then
    openai
    say "The demo's agent asks the model $MODEL_NAME at $MODEL_URL over the OpenAI protocol (OPENAI_API_KEY is set)"
  elif [[ -n ${ANTHROPIC_API_KEY:-} ]]; then
    anthropic
    say "The demo's agent asks the model $MODEL_NAME at $MODEL_URL over the Anthropic protocol (ANTHROPIC_API_KEY is set)"
  else
    say 'Neither OPENAI_API_KEY nor ANTHROPIC_API_KEY is set: a scripted stand-in answers in place of a model'
    local name
    for name in OPENAI_BASE_URL ANTHROPIC_BASE_URL; do
      [[ -z ${!name:-} ]] || echo "$name has no effect without ${name%BASE_URL}API_KEY; a server that needs no key takes any"
    done
    scriptedmodel --listen 127.0.0.1:0 --script "${2:-$root/test/scriptedmodel/scripts/demo.yaml}" >"$1/model.log" 2>&1 &
    model_pid=$!
    await "$1/model.log" 'listening' "$model_pid"
    MODEL_TYPE=openai MODEL_URL=${line##* } MODEL_KEY=scripted-key MODEL_NAME=scripted-1
  fi
}

# repository DIR: makes a git repository of the files of artifacts/demo/greeting in DIR and serves it on loopback. Sets REPOSITORY_URL
# and PUSH_TOKEN; REPOSITORY_URL stays empty where git lacks its server, which some systems install apart.
repository() {
  PUSH_TOKEN=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n') REPOSITORY_URL=''
  repositoryhost --from "$root/artifacts/demo/greeting" --dir "$1" --push-token "$PUSH_TOKEN" >"$1/repository.log" 2>&1 &
  repository_pid=$!
  if await "$1/repository.log" 'serving' "$repository_pid"; then
    REPOSITORY_URL=${line##* }
  else
    local code=0
    wait "$repository_pid" || code=$?
    repository_pid=''
    [[ $code == 3 ]]
  fi
}

# providers: creates a Provider with its Secret for each vendor whose key is in the environment: openai and anthropic. A
# subshell keeps the variables of the demo's agent.
providers() (
  [[ -z ${OPENAI_API_KEY:-} ]] || { openai && manifest "$root/artifacts/demo/provider.yaml" | kubectl apply -f -; }
  [[ -z ${ANTHROPIC_API_KEY:-} ]] || { anthropic && manifest "$root/artifacts/demo/provider.yaml" | kubectl apply -f -; }
)

# manifest FILE: prints the file with the settings of the model and of the repository filled in.
manifest() {
  local text
  text=$(<"$1")
  text=${text//'${MODEL_TYPE}'/$MODEL_TYPE}
  text=${text//'${MODEL_URL}'/$MODEL_URL}
  text=${text//'${MODEL_KEY}'/$MODEL_KEY}
  text=${text//'${MODEL_NAME}'/$MODEL_NAME}
  text=${text//'${REPOSITORY_URL}'/${REPOSITORY_URL:-}}
  text=${text//'${PUSH_TOKEN}'/${PUSH_TOKEN:-}}
  printf '%s\n' "$text"
}
